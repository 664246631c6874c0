/** Translation of the messages between Dask clients and the scheduler. */
import type {
  CancelledKeys,
  ClientReport,
  ToClientMessage,
  UpdateData,
} from '../../../core/api/index.ts';
import type { Relay } from '../interop/relay.ts';
import { toNumber } from '../codec/index.ts';
import type { Fields } from '../context.ts';
import type { Dialect } from '../codec/dialect.ts';
import type { KeyTable } from './key-table.ts';
import { failureForClient } from '../rpc/py-failure.ts';
import { stimulusOf } from './translate-from-worker.ts';
import type { TypeTable } from '../codec/type-table.ts';
import { asList, entriesOf } from '../codec/values.ts';

/** Translates a message to a client into messages of its stream. */
export function toClient(
  message: ToClientMessage,
  dialect: Dialect,
  keys: KeyTable,
  types: TypeTable,
  relay: Pick<Relay, 'sourcesOf'>,
): readonly Fields[] {
  switch (message.op) {
    case 'key-in-memory': {
      const type = types.pickleOf(message.type);
      return [
        {
          op: 'key-in-memory',
          key: keys.wireOf(message.key),
          workers: relay.sourcesOf(message.workers),
          ...(type === undefined ? {} : { type }),
        },
      ];
    }
    case 'task-erred': {
      const { exception, traceback } = failureForClient(message.failure, message.blame, keys);
      return [{ op: 'task-erred', key: keys.wireOf(message.key), exception, traceback }];
    }
    case 'cancelled-keys':
    case 'data-refused':
      return cancelledKeys(message, dialect, keys);
    case 'lost-data':
    case 'task-retried':
      return [{ op: message.op, key: keys.wireOf(message.key) }];
    case 'restart':
      return [{ op: 'restart' }];
  }
}

/** As the release of the client understands it. */
function cancelledKeys(
  { keys: texts, reason, message }: Omit<CancelledKeys, 'op'>,
  dialect: Dialect,
  keys: KeyTable,
): readonly Fields[] {
  const wires = keys.wiresOf(texts);
  if (!dialect.hasCancelledKeys) return wires.map((key) => ({ op: 'cancelled-key', key }));
  if (!dialect.hasCancelReasons) return [{ op: 'cancelled-keys', keys: wires }];
  return [{ op: 'cancelled-keys', keys: wires, reason, msg: message ?? null }];
}

/** Reports that need only a translation. Undefined for all other messages. */
export function simpleClientReport(
  message: Fields,
  keys: KeyTable,
): Exclude<ClientReport, { readonly op: 'graph-part' }> | undefined {
  const stimulusId = stimulusOf(message);
  switch (message['op']) {
    case 'client-releases-keys':
      return { op: 'client-releases-keys', keys: keys.textsOf(message['keys']), stimulusId };
    case 'report-key':
      return { op: 'report-key', key: keys.textOf(message['key']), stimulusId };
    case 'update-data':
      return { op: 'update-data', items: dataItems(message, keys), stimulusId };
    case 'cancel-keys': {
      return {
        op: 'cancel-keys',
        keys: keys.textsOf(message['keys']),
        force: message['force'] === true,
        ...cancellationIn(message),
        stimulusId,
      };
    }
    default:
      return undefined;
  }
}

/** Why a client of Dask cancels: `reason`, and `msg` for people. */
export function cancellationIn(request: Fields): { reason?: string; message?: string } {
  const { reason, msg } = request;
  return {
    ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    ...(typeof msg === 'string' && msg !== '' ? { message: msg } : {}),
  };
}

/** `who_has` and `nbytes`, both by key. */
export function dataItems(message: Fields, keys: KeyTable): UpdateData['items'] {
  const sizes = new Map(
    entriesOf(message['nbytes']).map(([key, size]) => [keys.textOf(key), toNumber(size) ?? -1]),
  );
  return entriesOf(message['who_has']).map(([wire, holders]) => {
    const key = keys.textOf(wire);
    const nbytes = sizes.get(key) ?? -1;
    return {
      key,
      ...(nbytes < 0 ? {} : { nbytes }),
      workers: (asList(holders) ?? []).map(String),
    };
  });
}
