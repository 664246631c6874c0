import type { YardmasterError } from '../../../core/api/index.ts';
import type { TypeTable } from '../codec/type-table.ts';
import type { Comm } from '../connection/comm.ts';
import type { DaskClient, DaskContext, DaskWorker, Fields } from '../context.ts';
import type { Operations } from '../rpc/operations.ts';

/** A peer of Dask whose stream can be held back. */
interface BridgedPeer {
  /** Stops, or starts again, the reading of its stream. */
  hold(isHeld: boolean): void;
}

/** A worker of Dask as the front keeps it. */
export type BridgedWorker = DaskWorker & BridgedPeer;

/** A client of Dask as the front keeps it. */
export interface BridgedClient extends DaskClient, BridgedPeer {
  /** It wants these keys, after all that it has said before. */
  want(keys: readonly string[]): void;
  /**
   * Resolves when no graph of this client is being unpacked or submitted, and no message waits behind
   * one.
   */
  settled(): Promise<void>;
}

/** What the connections of Dask's peers need of the scheduler. */
export interface BridgeHost extends DaskContext {
  /** Types of results by key. */
  readonly types: TypeTable;
  /** What peers can ask, and send on their streams. */
  readonly operations: Operations;
  /** The scheduler says goodbye: failures of connections are expected. */
  readonly isClosing: boolean;
  addWorker(worker: BridgedWorker): void;
  removeWorker(worker: BridgedWorker): void;
  addClient(client: BridgedClient): void;
  removeClient(client: BridgedClient): void;
  /** Pickled plugins for a worker that registers, by name. */
  workerPluginsFor(worker: DaskWorker): ReadonlyMap<string, unknown>;
  /** Seconds between the heartbeats of a client. */
  clientHeartbeatIntervalS(): number;
  /** A task ended on a worker of Dask. */
  taskDone(message: Fields, key: string, worker: DaskWorker): void;
  graphSubmitted(client: DaskClient, keys: readonly string[], message: Fields): void;
  /** Forgets keys that a client wants and that have no task yet. */
  dropPendingWishes(client: string, keys: readonly string[]): void;
  /** Has a nanny end and replace the process of its worker. */
  killThroughNanny(nanny: string, reason: string): void;
  /** Answers with an error that the peer raises, and ends the connection. */
  fail(comm: Comm, error: unknown): void;
  report(error: YardmasterError): void;
}
