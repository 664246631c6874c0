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
} from './context.ts';
import { PythonException } from './py-errors.ts';

/** What peers can ask and tell, by the names of Dask's operations, and the extensions that add to it. */
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
  ) {
    this.rpc = tableOf([rpc, ...extensions.map((each) => each.rpc)]);
    this.clientOps = tableOf(extensions.map((each) => each.clientOps));
    this.workerOps = tableOf(extensions.map((each) => each.workerOps));
  }

  /** @throws PythonException when there is no such operation; so do the others */
  request(op: string): RpcHandler {
    if (this.blocked.has(op)) {
      throw new PythonException(
        'ValueError',
        `The '${op}' handler has been explicitly disallowed in Scheduler, possibly due to security concerns.`,
      );
    }
    return this.rpc.get(op) ?? unknown(op);
  }

  clientOp(op: string, message: Fields, client: DaskClient, context: DaskContext): void {
    (this.clientOps.get(op) ?? unknown(op))(message, client, context);
  }

  workerOp(op: string, message: Fields, worker: DaskWorker, context: DaskContext): void {
    (this.workerOps.get(op) ?? unknown(op))(message, worker, context);
  }

  /** Hooks of the extensions, for the plugin. */
  get hooks(): ExtensionHooks {
    const steps = this.extensions.flatMap(({ hooks }) => hooks?.taskTransition ?? []);
    const removals = this.extensions.flatMap(({ hooks }) => hooks?.workerRemoved ?? []);
    return {
      taskTransition: (...args) => {
        for (const hook of steps) hook(...args);
      },
      workerRemoved: (...args) => {
        for (const hook of removals) hook(...args);
      },
    };
  }

  /** Pickled plugins that extensions need on a worker of this kind, by name. */
  workerPluginsFor(worker: DaskWorker): readonly (readonly [name: string, pickle: unknown])[] {
    return this.extensions.flatMap((extension) =>
      Object.entries(extension.workerPluginsFor?.(worker) ?? {}),
    );
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

function tableOf<T>(
  tables: readonly (Readonly<Record<string, T>> | undefined)[],
): ReadonlyMap<string, T> {
  return new Map(tables.flatMap((table) => Object.entries(table ?? {})));
}

function unknown(op: string): never {
  throw new PythonException(
    'NotImplementedError',
    `the scheduler does not know the operation ${JSON.stringify(op)}; docs/dask.md lists what it serves`,
  );
}
