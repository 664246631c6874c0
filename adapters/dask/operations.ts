import { HOOK_NAMES, YardmasterError } from '../../core/api/index.ts';
import { ClientBridge } from './client-bridge.ts';
import type { BridgeHost } from './translate.ts';
import { WorkerBridge } from './worker-bridge.ts';
import { type Fields, isFields, omit } from './wire/codec.ts';
import { type Comm, NO_REPLY } from './wire/comm.ts';
import { parseDaskAddress } from './wire/sockets.ts';
import type {
  ClientOp,
  DaskClient,
  DaskContext,
  DaskExtension,
  DaskWorker,
  ExtensionHooks,
  RpcHandler,
  RpcTable,
  WorkerOp,
} from './context.ts';
import { DIAGNOSTICS, TABLES } from './cluster.ts';
import { IDENTITY } from './identity.ts';
import { checkParameters, PARAMETERS } from './parameters.ts';
import { PythonError, PythonException, uncaughtAnswer } from './wire/py-errors.ts';
import { RESULTS } from './results.ts';
import { FLEET, MEMBERSHIP, PLUGINS, RESTART } from './workers.ts';

/** Operations that come and go while the scheduler runs: those that plugins in Python add. */
export interface AddedOperations {
  request(op: string): RpcHandler | undefined;
  clientOp(op: string): ClientOp | undefined;
  workerOp(op: string): WorkerOp | undefined;
}

/**
 * The requests and stream messages of peers, by the names of Dask's operations, and the extensions
 * that add to them.
 */
export class Operations {
  private readonly rpc: ReadonlyMap<string, RpcHandler>;
  private readonly clientOps: ReadonlyMap<string, ClientOp>;
  private readonly workerOps: ReadonlyMap<string, WorkerOp>;

  /**
   * An extension may take the place of an operation before it.
   * @param blocked - operations of requests that are refused
   */
  constructor(
    private readonly blocked: ReadonlySet<string>,
    rpc: RpcTable,
    private readonly extensions: readonly DaskExtension[],
    private readonly added?: AddedOperations,
  ) {
    this.rpc = tableOf([rpc, ...extensions.map((each) => each.rpc)]);
    this.clientOps = tableOf(extensions.map((each) => each.clientOps));
    this.workerOps = tableOf(extensions.map((each) => each.workerOps));
    for (const op of this.rpc.keys()) assertListed('request', op);
    for (const op of [...this.clientOps.keys(), ...this.workerOps.keys()]) {
      assertListed('stream', op);
    }
  }

  /** True when the scheduler itself answers this operation. */
  isOwnRequest(op: string): boolean {
    return this.rpc.has(op);
  }

  /**
   * The handler checks the parameters of what it is given; those that Python has added check their own.
   * @throws PythonException when there is no such operation; so do the others
   */
  request(op: string): RpcHandler {
    if (this.blocked.has(op)) {
      throw new PythonException(
        'ValueError',
        `The '${op}' handler has been explicitly disallowed in Scheduler, possibly due to security concerns.`,
      );
    }
    const handler = this.rpc.get(op);
    if (handler === undefined) return this.added?.request(op) ?? unknown(op);
    return (request, context, comm) => {
      checkParameters('request', op, request);
      return handler(request, context, comm);
    };
  }

  clientOp(op: string, message: Fields, client: DaskClient, context: DaskContext): void {
    (this.clientOps.get(op) ?? this.added?.clientOp(op) ?? unknown(op))(message, client, context);
  }

  workerOp(op: string, message: Fields, worker: DaskWorker, context: DaskContext): void {
    (this.workerOps.get(op) ?? this.added?.workerOp(op) ?? unknown(op))(message, worker, context);
  }

  /** Hooks of the extensions, for the plugin. */
  get hooks(): ExtensionHooks {
    const merged = HOOK_NAMES.flatMap((name) => {
      const hooks = this.extensions.flatMap((each) => {
        const hook = each.hooks?.[name];
        return hook === undefined ? [] : [hook as AnyHook];
      });
      if (hooks.length === 0) return [];
      const call: AnyHook = (...args) => {
        for (const hook of hooks) hook(...args);
      };
      return [[name, call] as const];
    });
    return Object.fromEntries(merged);
  }

  /** Pickled plugins that extensions need on a worker of this kind, by name. */
  workerPluginsFor(worker: DaskWorker): readonly (readonly [name: string, pickle: unknown])[] {
    return this.extensions.flatMap((extension) =>
      Object.entries(extension.workerPluginsFor?.(worker) ?? {}),
    );
  }

  workerJoined(worker: DaskWorker): void {
    for (const extension of this.extensions) extension.workerJoined?.(worker);
  }

  clientGone(client: DaskClient): void {
    for (const extension of this.extensions) extension.clientGone?.(client);
  }

  restarted(): void {
    for (const extension of this.extensions) extension.restarted?.();
  }

  close(): void {
    for (const extension of this.extensions) extension.close?.();
  }
}

type AnyHook = (...args: unknown[]) => void;

function tableOf<T>(
  tables: readonly (Readonly<Record<string, T>> | undefined)[],
): ReadonlyMap<string, T> {
  return new Map(tables.flatMap((table) => Object.entries(table ?? {})));
}

function assertListed(kind: 'request' | 'stream', op: string): void {
  if (!PARAMETERS[kind].has(op)) throw new Error(`parameters.ts lacks the ${kind} ${op}`);
}

function unknown(op: string): never {
  throw new PythonException(
    'NotImplementedError',
    `the scheduler does not know the operation ${JSON.stringify(op)}; docs/dask.md lists what it serves`,
  );
}

// The connections on which Dask's processes ask for something, until one becomes a stream.

/** Answers requests one after the other, until one of them makes a stream of the connection. */
export async function serveRequests(comm: Comm, host: BridgeHost): Promise<void> {
  comm.trust(() => isHostOfPeer(host, comm));
  try {
    for (;;) {
      const request = await comm.read();
      if (!isFields(request)) continue; // A peer acknowledges some answers with a plain text.
      const { op } = request;
      if (op === undefined) {
        host.nannyStarts.end(comm); // It says how its start went.
        continue;
      }
      if (op === 'close') {
        await comm.close();
        return;
      }
      if (op === 'register-worker' || op === 'register-client') {
        checkParameters('request', op, request);
        await (op === 'register-worker' ? WorkerBridge : ClientBridge).open(comm, request, host);
        return;
      }
      if (await answer(comm, typeof op === 'string' ? op : '?', request, host)) return;
    }
  } catch (error) {
    if (comm.isClosed) return; // The peer has left, so the answer is dropped.
    host.log.warn({ err: error, peer: comm.peerAddress }, 'a connection of Dask was given up');
    host.fail(comm, error);
  }
}

/** True when it was the last request of the connection. */
async function answer(comm: Comm, op: string, request: Fields, host: BridgeHost): Promise<boolean> {
  const wantsReply = request['reply'] !== false;
  try {
    const given = await host.operations.request(op)(
      omit(request, 'op', 'reply', 'close'),
      host,
      comm,
    );
    if (wantsReply && given !== NO_REPLY) comm.write(given ?? null);
  } catch (error) {
    if (!host.isClosing) logFailure(op, comm, error, host);
    if (wantsReply) comm.write(uncaughtAnswer(error));
  }
  if (request['close'] !== true) return false;
  await comm.close();
  return true;
}

function logFailure(op: string, comm: Comm, error: unknown, { log }: BridgeHost): void {
  const isOrdinary = error instanceof PythonException || error instanceof PythonError;
  const fields = { err: error, op, peer: comm.peerAddress };
  const text = `the request ${op} of ${comm.peerAddress} failed: ${(error as Error).message}`;
  if (isOrdinary || YardmasterError.is(error)) log.debug(fields, text);
  else log.error(fields, text);
}

// What belongs to the dashboard. Each says so by its name.

const FEATURES: Readonly<Record<string, string>> = {
  get_profile_metadata: 'the dashboard',
  eventstream: 'the dashboard',
};

/** Handlers that refuse. */
const UNSUPPORTED: RpcTable = Object.fromEntries(
  Object.entries(FEATURES).map(([op, feature]) => [
    op,
    () => {
      throw new PythonException(
        'NotImplementedError',
        `${feature} needs the dashboard of Dask's scheduler, which Yardmaster does not have; see docs/dask.md`,
      );
    },
  ]),
);

/**
 * True when a client or worker is registered from the host of the peer: they ask and answer on connections of their
 * own as well, which do not say whose they are. O(clients and workers).
 */
function isHostOfPeer(
  { clients, workers }: Pick<DaskContext, 'clients' | 'workers'>,
  comm: Pick<Comm, 'peerAddress'>,
): boolean {
  const { host } = parseDaskAddress(comm.peerAddress);
  for (const client of clients.values()) {
    if (parseDaskAddress(client.peerAddress).host === host) return true;
  }
  for (const worker of workers.values()) {
    if (parseDaskAddress(worker.address).host === host) return true;
  }
  return false;
}

/**
 * Refuses what a peer wants Python to unpickle, which is to run code, unless a client is registered from the same
 * host: Dask's clients ask for it on connections of their own, which do not say whose they are.
 * @param comm - undefined: Python beside the scheduler asks, which runs already
 * @throws PythonException `OSError`
 */
export function requireClient(
  { clients }: Pick<DaskContext, 'clients'>,
  comm: Pick<Comm, 'peerAddress'> | undefined,
  what: string,
): void {
  if (comm === undefined) return;
  const { host } = parseDaskAddress(comm.peerAddress);
  for (const client of clients.values()) {
    if (parseDaskAddress(client.peerAddress).host === host) return;
  }
  throw new PythonException(
    'OSError',
    `${what} is for registered clients, and none is registered from ${host}`,
  );
}

/** The requests to the scheduler, by name, that need no state between calls. */
export const RPC: RpcTable = {
  ...UNSUPPORTED,
  ...IDENTITY,
  ...MEMBERSHIP,
  ...TABLES,
  ...RESULTS,
  ...FLEET,
  ...RESTART,
  ...PLUGINS,
  ...DIAGNOSTICS,
};
