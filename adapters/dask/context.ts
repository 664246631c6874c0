import type {
  Bridge,
  Clock,
  ClusterView,
  Logger,
  PluginContext,
  SchedulerHooks,
} from '../../core/api/index.ts';
import type { Tallies } from './tallies.ts';
import type { Relay, WaitingWorker } from './dask-peer.ts';
import type { Comm } from './wire/comm.ts';
import type { CommPool } from './wire/comm-pool.ts';
import type { Dialect, Fields } from './wire/codec.ts';
import type { GraphUnpacker } from './graph/index.ts';
import type { KeyTable } from './wire/key-table.ts';
import type { DaskOptions } from './options.ts';
import type { NannyStarts } from './worker-bridge.ts';

/** The plugin, with what it needs to bring Dask's workers and clients in. */
export type DaskPlugin = PluginContext & Bridge;

/** A Dask client that is connected. */
export interface DaskClient {
  readonly id: string;
  readonly dialect: Dialect;
  /** Of the connection with its stream. */
  readonly peerAddress: string;
  /** Puts messages on its stream. */
  send(...messages: readonly Fields[]): void;
}

/** A Dask worker that is connected. */
export interface DaskWorker extends WaitingWorker {
  readonly address: string;
  /** As it calls itself: a text or a number. */
  readonly name: unknown;
  /** Address of its nanny. */
  readonly nanny: string | undefined;
  readonly dialect: Dialect;
  readonly registration: Fields;
  /** As it last reported them. */
  readonly metrics: Fields;
  /** It lives. @param request - `heartbeat_worker` */
  heartbeat(request: Fields): void;
  /** Puts messages on its stream. */
  send(...messages: readonly Fields[]): void;
}

export type TaskObserver = (message: Fields, key: string, worker: DaskWorker) => void;
export type GraphObserver = (client: DaskClient, keys: readonly string[], message: Fields) => void;

/** The context of handlers of requests and of stream messages. */
export interface DaskContext {
  readonly plugin: DaskPlugin;
  readonly clock: Clock;
  readonly log: Logger;
  readonly cluster: ClusterView;
  readonly keys: KeyTable;
  /** Connections to workers and nannies, for calls. */
  readonly pool: CommPool;
  /** Gives Dask's peers what Node workers hold. */
  readonly relay: Relay;
  readonly workers: ReadonlyMap<string, DaskWorker>;
  /** Takes a worker out of {@link workers} that stays connected: its next heartbeat is told that it is missing. */
  forgetWorker(address: string): void;
  /** Connected Dask clients by id. */
  readonly clients: ReadonlyMap<string, DaskClient>;
  /** The address at which Dask peers reach the scheduler. */
  readonly address: string;
  /** Of this run of the scheduler. */
  readonly id: string;
  /** The time at which it began to listen, as {@link nowS}. */
  readonly startedS: number;
  /** Ports of other services, by name. */
  readonly services: Fields;
  /** Seconds between the heartbeats of a worker. */
  heartbeatIntervalS(): number;
  /** Counts of what has happened since the start. */
  readonly tallies: Tallies;
  /** The settings of leases, adaptive clusters and dumps. */
  readonly options: Pick<
    DaskOptions,
    'leaseTimeoutMs' | 'leaseCheckIntervalMs' | 'targetDurationMs' | 'dumpFolder'
  >;
  /** Seconds since 1970, as Python's `time()`. */
  nowS(): number;
  /** Plugins of Dask, as pickles by name. */
  readonly workerPlugins: Map<string, unknown>;
  readonly nannyPlugins: Map<string, unknown>;
  /** Called with the report of every present run that ended on a worker of Dask. */
  readonly taskObservers: Set<TaskObserver>;
  /** Called with every graph that a client of Dask has submitted. */
  readonly graphObservers: Set<GraphObserver>;
  /** Adds keys to those that a client wants. Dask's pseudo-clients (`queue-x`) are allowed. */
  desireKeys(client: string, keys: readonly string[]): void;
  releaseKeys(client: string, keys: readonly string[]): void;
  /** Ends when a graph of the client, or of any, is not being unpacked any more. */
  graphsSettled(client?: string): Promise<void>;
  /** Reads graphs, and what else only Python can read. */
  readonly graphs: GraphUnpacker;
  /** The nannies that are between their registration and the start of their worker. */
  readonly nannyStarts: NannyStarts;
}

/**
 * Answers a request. What it throws is raised in the peer (see `PythonException`).
 * @param request - the fields of the request without `op`, `reply`, `close` and `serializers`
 */
export type RpcHandler = (request: Fields, context: DaskContext, comm: Comm) => unknown;

export type RpcTable = Readonly<Record<string, RpcHandler>>;

/** Takes a message of the stream of a client or worker. */
export type ClientOp = (message: Fields, client: DaskClient, context: DaskContext) => void;
export type WorkerOp = (message: Fields, worker: DaskWorker, context: DaskContext) => void;

export type ExtensionHooks = Partial<SchedulerHooks>;

/** The operations that an extension of the scheduler (locks, queues, …) adds. Its state lives in the closure. */
export interface DaskExtension {
  readonly rpc?: RpcTable;
  readonly clientOps?: Readonly<Record<string, ClientOp>>;
  readonly workerOps?: Readonly<Record<string, WorkerOp>>;
  /** Called as the hooks of a plugin are. */
  readonly hooks?: ExtensionHooks;
  /** Pickled plugins that a worker of this kind needs, by name. */
  workerPluginsFor?(worker: DaskWorker): Readonly<Record<string, unknown>>;
  /** A Dask worker has registered. */
  workerJoined?(worker: DaskWorker): void;
  clientGone?(client: DaskClient): void;
  /** All tasks were forgotten. */
  restarted?(): void;
  close?(): void;
}

/** Makes an extension for one scheduler. */
export type MakeExtension = (context: DaskContext) => DaskExtension;
