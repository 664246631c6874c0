import { randomUUID } from 'node:crypto';

import type { DaskExtension, Fields, MakeExtension } from '../context.ts';
import { Coordination, type GivenValue, nameIn, timeoutIn } from './coordination.ts';
import { FutureHandovers } from './future-handovers.ts';

/** How long a future may be ahead of its graph. */
const PATIENCE_MS = 30_000;

/** `distributed.Variable`: variables of the scheduler's coordination. */
export const makeVariables: MakeExtension = (context): DaskExtension => {
  const coordination = new Coordination(context);
  const handovers = new FutureHandovers(coordination);

  async function get(request: Fields): Promise<Fields> {
    const name = nameIn(request);
    const wait = { name, timeoutMs: timeoutIn(request) };
    const given = await coordination.call<GivenValue>('getVariable', wait, request['client']);
    const record = coordination.unpack(given);
    if (record.type === 'msgpack') return record;
    const token = randomUUID().replaceAll('-', '');
    handovers.add(name, record.value, given, token);
    return { ...coordination.describe(record), token };
  }

  return {
    rpc: {
      variable_set: async (request) => {
        const record = await coordination.recordIn(request, timeoutIn(request) ?? PATIENCE_MS);
        const stored = coordination.pack(record);
        await coordination.call('setVariable', { name: nameIn(request), ...stored });
      },
      variable_get: (request) => get(request),
    },
    clientOps: {
      'variable-future-release': (message, client) => handovers.received(message, client.id),
      'variable-future-received-confirm': (message, client) =>
        handovers.received(message, client.id),
      variable_delete: (message) => {
        coordination.notify('deleteVariable', { name: nameIn(message) });
      },
    },
  };
};
