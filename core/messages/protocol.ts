import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import type { Count, Integer, Limit, Name, Positive, Secret, Size } from '../util/values.ts';

// The conversation between Yardmaster's own processes, above a `Channel`.
//
// The side that connects asks `hello` first; anything else before it is `ERR_PROTOCOL`. Then a worker
// asks `register-worker`, a client `register-client`, and both send their reports as plain messages.
// A peer (a worker or a client that fetches data) asks `get-data` of a worker.

/** Both sides must agree on it exactly. */
export const PROTOCOL = 'yardmaster/1';

/** The role of the connecting side. */
export type Role = 'worker' | 'client' | 'peer';

/** The first request of every peer: who it is, and which protocol it speaks. */
export interface HelloRequest {
  readonly protocol: string;
  readonly role: Role;
  /** Version of the package, for messages to people. */
  readonly version: string;
}

/** The scheduler or worker introduces itself. */
export interface HelloReply {
  readonly protocol: string;
  readonly version: string;
  /** Id of the scheduler or worker process that answered. */
  readonly serverId: string;
}

/** Results that a worker has computed; parallel arrays. */
export interface HeldResults {
  readonly keys: readonly Name[];
  /** Of the assignments under which they were computed. */
  readonly runIds: readonly Integer[];
  readonly nbytes: readonly Size[];
  /** Type names. */
  readonly types: readonly string[];
}

/** Runs that continue on a worker that comes back; parallel arrays. */
export interface HeldRuns {
  readonly keys: readonly Name[];
  readonly runIds: readonly Integer[];
  /** True when each continues without a thread of the worker. */
  readonly seceded: readonly boolean[];
  readonly ending?: EndingRuns;
}

/** Runs that were taken back or are overdue, and whose code goes on; `runs-over` follows. Parallel arrays. */
export interface EndingRuns {
  readonly runIds: readonly Integer[];
  /** Names of the limits for which they count; empty: none. */
  readonly limits: readonly string[];
  /** False when each occupies a thread of the worker. */
  readonly seceded: readonly boolean[];
}

/** A worker introduces itself. */
export interface RegisterWorkerRequest {
  readonly identity: WorkerIdentity;
  readonly status: WorkerStatus;
  readonly metrics?: WorkerMetrics;
  /** It was here before, and comes back to the same scheduler with these. */
  readonly held?: HeldResults;
  /**
   * With the same secret it may take the place of its former connection. Default none: the address and the
   * name are free again when that connection has ended.
   */
  readonly secret?: Secret;
  /** With `held`, when the scheduler keeps runs: those that continue. */
  readonly runs?: HeldRuns;
}

/** A plugin of workers as it travels: named, never code. */
export interface RemotePlugin {
  /** Under which it is known; a second one of the same name takes its place. */
  readonly name: string;
  /** Absolute path, or package. `#Name` picks an export, else the default one. */
  readonly use: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** The interval at which the worker shall report, and the time of the scheduler. */
export interface RegisterWorkerReply {
  readonly heartbeatIntervalMs: number;
  /** The scheduler's clock, in milliseconds. */
  readonly nowMs: number;
  /**
   * The scheduler has a journal: when the connection breaks, the worker keeps its copies and continues its
   * runs, because the same scheduler may come back. Default false.
   */
  readonly keepsRuns?: boolean;
  /** The plugins that clients have registered for all workers. Default none. */
  readonly workerPlugins?: readonly RemotePlugin[];
  /** The plugins that clients have registered for the nannies of all workers. Default none. */
  readonly nannyPlugins?: readonly RemotePlugin[];
}

/** A client introduces itself. */
export interface RegisterClientRequest {
  /** Chosen by the client; unique. */
  readonly client: Name;
  /**
   * A client whose connection breaks comes back under the same key within this time, or not at all.
   * Milliseconds. Before it closes in good order it says so: `close-client`. Default 0; without a secret
   * always 0.
   */
  readonly returnWithinMs?: Limit;
  /** With the same secret it takes its place again when it comes back. Default none. */
  readonly secret?: Secret;
  /** With a journal, the scheduler says up to which report it has written: `committed`. Default false. */
  readonly wantsCommits?: boolean;
  readonly versions?: Readonly<Record<string, string>>;
}

/** The interval at which the client shall report that it lives, and the operations that it may send. */
export interface RegisterClientReply {
  readonly heartbeatIntervalMs: number;
  /** The key of the client is that of a viewer: whatever changes the cluster is refused. Default false. */
  readonly onlyLooks?: boolean;
  /**
   * Largest message in bytes that passes between the scheduler and all its peers: a larger argument
   * could reach the scheduler and no worker. Default: no limit.
   */
  readonly messageBytesMax?: number;
  /** The scheduler and all its peers are in one process, so that shared memory stays shared. Default false. */
  readonly sharesMemory?: boolean;
  /** The scheduler has a journal: the number of the last report of this client in it, 0 for none. */
  readonly committed?: number;
}

/** Sent to clients that want it: their reports up to this number are in the journal, and on the disk. */
export interface Committed {
  readonly op: 'committed';
  readonly upTo: number;
  /** The journal cannot be written any more: later reports are in none. Default false. */
  readonly isOver?: boolean;
}

/** Served by workers. Keys that the worker does not hold are left out of the answer. */
export interface GetDataRequest {
  readonly keys: readonly Name[];
  /** The sender tries again when the answer is that the worker is busy. Workers do. */
  readonly mayBeBusy?: boolean;
  /**
   * Results that do not fit into one message may be offered in parts. Default false: all are in the
   * answer.
   */
  readonly inParts?: boolean;
}

/** Parallel arrays. */
export interface GetDataReply {
  readonly keys: readonly string[];
  readonly values: readonly Uint8Array[];
  /** Of the runs that computed them, parallel to `keys`; -1 where no run did. Only workers say it. */
  readonly runIds?: readonly number[];
  /** The type of the results, if all have the same and the peer has computed them. */
  readonly type?: string;
  /** Nothing is in the answer because too much is being sent at present. */
  readonly busy?: boolean;
  /** Further results, to be asked for part by part; each counts as being sent until it has ended. */
  readonly parts?: readonly OfferedParts[];
}

/** A result that is to be had in parts. */
export interface OfferedParts {
  readonly key: string;
  readonly nbytes: number;
  /** As in {@link GetDataReply.runIds}. */
  readonly runId?: number;
  /** The number of the result for `get-part`, on this connection. */
  readonly handle: number;
}

/** Served by workers: they open the memory file of the peer, see {@link MemoryFileName}, and write parts into it. */
export interface ShareFileRequest {
  readonly path: string;
  readonly proof: Uint8Array;
}

/** The answer to {@link ShareFileRequest}. */
export interface ShareFileReply {
  /** Both are on one machine, and the file is open. */
  readonly isShared: boolean;
}

/** Served by those that have offered parts: the next part of a result. */
export interface GetPartRequest {
  readonly handle: Count;
  /** Bytes wanted; fewer may come. The server has its own limit. */
  readonly nbytes: Positive;
  /** The place in the memory file of the peer, if it shares one, where the part goes. Default: into the answer. */
  readonly at?: Count;
}

/** Sent to those that have offered parts: these results will not be asked for any more. */
export interface DropParts {
  readonly op: 'drop-parts';
  readonly handles: readonly Count[];
}

/** The next bytes of a result. */
export interface GetPartReply {
  /** None, and none written: the result is gone, or damaged. */
  readonly bytes?: Uint8Array;
  /** They lie in the memory file of the peer, at the place that it said: so many. */
  readonly written?: Count;
}

/** Served by workers: a client scatters data. */
export interface PutDataRequest {
  readonly keys: readonly string[];
  readonly values: readonly Uint8Array[];
  /** The answer of the scheduler to `reserve-data`. Default 0: nothing was reserved. */
  readonly reservation?: number;
}

/** The worker has stored all of them, or else it answers with an error and has stored none. */
export interface PutDataReply {
  /** Bytes of each, in the order of the request. */
  readonly nbytes: readonly number[];
}

/** Served by the scheduler: where results are; parallel arrays. */
export interface WhoHasRequest {
  readonly keys: readonly Name[];
}

/** Addresses of the workers that hold each key; parallel to `keys`. */
export interface WhoHasReply {
  readonly keys: readonly string[];
  readonly whoHas: readonly (readonly string[])[];
}

/** Served by the scheduler: it fetches results on behalf of a client that cannot reach workers. */
export type GatherRequest = GetDataRequest;
/** The results of the keys, or why they cannot be had. */
export type GatherReply = GetDataReply;

/** Served by the scheduler: a call that a plugin offers, or a built-in one (`story`, `identity`, …). */
export interface CommandRequest {
  readonly command: Name;
  readonly parameters?: unknown;
}

/** Served by the scheduler at once, whatever else is waiting: a sign of life. */
export type PingRequest = Readonly<Record<string, unknown>>;

/** The requests that the scheduler answers: parameters by method. */
export interface SchedulerRequests {
  readonly hello: HelloRequest;
  readonly 'register-worker': RegisterWorkerRequest;
  readonly 'register-client': RegisterClientRequest;
  readonly 'who-has': WhoHasRequest;
  readonly gather: GatherRequest;
  readonly 'get-part': GetPartRequest;
  readonly command: CommandRequest;
  readonly ping: PingRequest;
}

/** A line of a log, as it is sent to clients. */
export interface LogLine {
  /** By the clock of the process that logged it, in milliseconds. */
  readonly atMs: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** Its fields as text, cut when they are long. */
  readonly fields: string;
}

/** Served by workers to their scheduler: a look inside. */
export interface InspectRequest {
  readonly what:
    'versions' | 'logs' | 'state' | 'identity' | 'connections' | 'call-stacks' | 'profile';
  /** With `call-stacks`: of these tasks. Default: of all that run. */
  readonly keys?: readonly string[];
  /** With `profile`, of workers that sample all the time: from this moment on. Default: all that they keep. */
  readonly sinceMs?: number;
  /** Newest lines of the log. Default: all that are kept. */
  readonly count?: number;
}

/** The answer by topic: versions by name; `{ lines }`; or the state as plain data. */
export type InspectReply = Readonly<Record<string, unknown>>;

/**
 * A failure on the wire: everything that a reader needs to understand it, nothing that needs the
 * code which threw it. The scheduler carries it without looking inside.
 */
export interface ErrorPayload {
  /** Class of the error (`TypeError`), or `NonError` when something else was thrown. */
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  /** Stable code (`ERR_…`, `ENOENT`), where there is one. */
  readonly code?: string;
  readonly cause?: ErrorPayload;
  /** Further own properties that could be serialised. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** The computation of a task on a JavaScript worker: a function that the worker imports. */
export interface FunctionSpec {
  /** URL of the module that called `defineTasks`. */
  readonly module: string;
  /** Name under which `defineTasks` received the function. */
  readonly name: string;
  /** Hash of the module's source as the client has it; a worker with another one refuses. */
  readonly version: string;
  /** Serialised array of arguments in which each result of another task is a placeholder. */
  readonly args: Uint8Array;
  /**
   * Short hash of function and arguments, for a key that its author chose. The scheduler refuses a task whose key
   * it knows with another definition. Default: the key follows from the definition, so none is needed.
   */
  readonly definition?: string;
  /**
   * Short hash of what inputs whose keys their authors chose follow from. Of a result that is read from a store the
   * scheduler does not know the inputs, so it compares this. Default: there are none, or they are not known.
   */
  readonly basis?: string;
  /** Repetition after a failure, by the thread that runs the task. Default: never. */
  readonly retry?: RetrySpec;
  /**
   * Places of arguments that are arrays with a value for each of many calls; the result is that of a chunk. Default: one
   * call.
   */
  readonly each?: readonly number[];
  /** The store that keeps the result beyond the life of the cluster. Default: none. */
  readonly persist?: PersistSpec;
}

/** The place of a kept result. */
export interface PersistSpec {
  readonly store: StoreSpec;
  /** Hash of what the result follows from: function, arguments, and the same of each input; without inputs when one is open. */
  readonly key: string;
  /** The hash of each input, by its task; empty: open, which the digest of its result completes. Default: none is open. */
  readonly inputs?: readonly (readonly [task: string, hash: string])[];
  /** The digest of the result is kept beside it, for what depends on it. Default false. */
  readonly hasDigest?: boolean;
  /** For a record, by the key of the task, of what the result followed from. Default: none is written. */
  readonly trace?: { readonly args: string; readonly client: string };
  /** The store has it: it is read, and the function is not called. Default false. */
  readonly isKept?: boolean;
}

/** A part of a bucket of S3, or of what speaks its protocol. */
export interface BucketSpec {
  readonly bucket: string;
  /** A prefix for the names of objects, such as `results/`. Default: none. */
  readonly prefix?: string;
  /** Default: of the environment of each process (`AWS_REGION`). */
  readonly region?: string;
  /** URL of a server other than that of AWS. */
  readonly endpoint?: string;
  /** The bucket is part of the path, not of the host: most other servers need it. Default false. */
  readonly forcePathStyle?: boolean;
}

/** A store of results: a folder, a bucket, or what a module or package defines, in the form of `UseEntry`. */
export type StoreSpec =
  | { readonly folder: string; readonly maxBytes?: number }
  | { readonly s3: BucketSpec }
  | { readonly use: string; readonly options?: Readonly<Record<string, unknown>> };

/** The rules by which a function that has failed is called again. */
export interface RetrySpec {
  /** Upper bound of further calls. */
  readonly times: number;
  /** Milliseconds before the first of them; each further wait is `factor` times as long. */
  readonly backoffMs: number;
  readonly factor: number;
  /** From 0 to 1: the share of a wait by which it may be shorter; the key and the attempt decide. */
  readonly jitter: number;
  /** Says of an error whether it is worth another call. Default: each is. */
  readonly retryIf?: Omit<FunctionSpec, 'args' | 'definition' | 'retry' | 'persist'>;
}
