import { HOOK_NAMES } from '../../../core/api/index.ts';
import type {
  ClientOp,
  DaskClient,
  DaskContext,
  DaskExtension,
  DaskWorker,
  ExtensionHooks,
  Fields,
  RpcHandler,
  RpcTable,
  WorkerOp,
} from '../context.ts';
import { checkParameters, PARAMETERS } from './parameters.ts';
import { PythonException } from './py-errors.ts';

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

  /** Whether the scheduler itself answers this operation. */
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
