/** Messages from clients to the scheduler. */
import type {
  Copies,
  Count,
  Finite,
  Integer,
  Limit,
  Name,
  Places,
  Resources,
  Size,
} from '../util/values.ts';
import type { TaskLimitDescription } from '../state/task-limits.ts';
import type { FromClient, Unstamped } from './cause.ts';
import type { DropParts } from './protocol.ts';

export type { TaskLimitDescription };

/** A client has come. */
export interface RegisterClient extends FromClient {
  readonly op: 'register-client';
  /** With a journal: hash of the secret with which it may come back. */
  readonly secretHash?: string;
  readonly versions?: Readonly<Record<string, string>>;
}

/** A client has left; the keys that it wanted are released. */
export interface RemoveClient extends FromClient {
  readonly op: 'remove-client';
}

/** A client lives. */
export interface HeartbeatClient extends FromClient {
  readonly op: 'heartbeat-client';
}

/** One task of a submitted graph. */
export interface GraphTask {
  readonly key: Name;
  readonly dependencies: readonly Name[];
  /** Opaque; undefined only for a key that the cluster knows already. */
  readonly runSpec: unknown;
  /** Position in the static order of the graph; without one the ordering policy gives it. */
  readonly rank?: Finite;
  /** Higher runs earlier. Default 0. */
  readonly userPriority?: Finite;
  readonly retries?: Count;
  /** Addresses, host names or worker names. */
  readonly workers?: Places;
  readonly hosts?: Places;
  readonly allowOtherWorkers?: boolean;
  readonly resources?: Resources;
  readonly limit?: TaskLimitDescription;
  readonly actor?: boolean;
  /** It loads or makes data: root-ish for the built-in policies, whatever its group looks like. */
  readonly dataProducer?: boolean;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** Default: derived from the key. */
  readonly group?: Name;
  readonly prefix?: Name;
}

/** A client submits tasks. */
export interface UpdateGraph extends FromClient {
  readonly op: 'update-graph';
  readonly tasks: readonly GraphTask[];
  /** Keys whose results the client wants. */
  readonly keys: readonly Name[];
  /** Submissions closer together than this share a generation. Default 0. */
  readonly fifoTimeoutMs?: Limit;
  /** The task from inside which this graph was submitted. */
  readonly submittingTask?: Name;
  /**
   * Read from a journal: ids that runs of these tasks have at least; parallel to `tasks`, or one for all.
   * Earlier runs under their keys were of other tasks.
   */
  readonly firstRunIds?: readonly Integer[];
}

/** A client wants results of tasks that exist. */
export interface ClientDesiresKeys extends FromClient {
  readonly op: 'client-desires-keys';
  readonly keys: readonly Name[];
  /** True: it wants nothing else. It is back, and its connection may have lost that it gave others up. Default false. */
  readonly isAll?: boolean;
}

/** A client does not want these results any more. */
export interface ClientReleasesKeys extends FromClient {
  readonly op: 'client-releases-keys';
  readonly keys: readonly Name[];
}

/** A client gives tasks up. */
export interface CancelKeys extends FromClient {
  readonly op: 'cancel-keys';
  readonly keys: readonly Name[];
  /** Also what other clients want. */
  readonly force: boolean;
  /** True: what depends on the keys stays wanted. Default false. */
  readonly keepsDependents?: boolean;
  /** Short, for programs: `cancelled` when there is none. */
  readonly reason?: string;
  /** For people. */
  readonly message?: string;
  /**
   * Milliseconds that a run has to stop before its thread is ended, where threads are ended at all.
   * Default: of the worker.
   */
  readonly killTimeoutMs?: Limit;
}

/** Computes failed tasks, and what failed with them, once more. */
export interface Retry extends FromClient {
  readonly op: 'retry';
  readonly keys: readonly Name[];
}

/**
 * A client changes the priority of tasks that it wants. Running tasks are not affected. Parallel
 * arrays.
 */
export interface SetPriority extends FromClient {
  readonly op: 'set-priority';
  readonly keys: readonly Name[];
  /** As {@link GraphTask.userPriority}: finite, higher runs earlier. */
  readonly userPriorities: readonly Finite[];
  /** True: the inputs that these tasks still need come at least as early as they do. Default false. */
  readonly raiseInputs?: boolean;
}

/**
 * A client submits tasks again that it holds: each keeps the higher priority and the more patient time limit. Keys that are
 * not wanted by the client are ignored, so the message may cross a cancellation. Parallel arrays.
 */
export interface SubmitAgain extends FromClient {
  readonly op: 'submit-again';
  readonly keys: readonly Name[];
  /** As {@link GraphTask.userPriority}. */
  readonly userPriorities: readonly Finite[];
  /** Milliseconds for a run, as the annotation `timeoutMs`. Infinity: no limit. */
  readonly timeLimitsMs: readonly Limit[];
}

/** Data under one key that a client put on workers itself. */
interface PutItem {
  readonly key: Name;
  /** Absent: unknown, which leaves the size as it was, -1 at first. */
  readonly nbytes?: Size;
  readonly workers: readonly string[];
  readonly type?: string;
  /** Hash of the bytes. Data with another one is refused as long as this data is there. */
  readonly fingerprint?: string;
  /** The answer to `reserve-data`. */
  readonly reservation?: Integer;
  /** As in `want-replicas`. Default 1. */
  readonly replicas?: Copies;
}

/**
 * Each item costs the scheduler about 15 µs, and it does nothing else until it has handled all of a message: who puts
 * more says so in several.
 * @maxItems 10000
 */
export type PutItems = readonly PutItem[];

/** The client put data on workers itself. */
export interface UpdateData extends FromClient {
  readonly op: 'update-data';
  readonly items: PutItems;
}

/** Asks for the present state of a key as a message. */
export interface ReportKey extends FromClient {
  readonly op: 'report-key';
  readonly key: Name;
}

/** All that happens through clients. */
export type ClientStimulus =
  | RegisterClient
  | RemoveClient
  | HeartbeatClient
  | UpdateGraph
  | ClientDesiresKeys
  | ClientReleasesKeys
  | CancelKeys
  | Retry
  | SetPriority
  | SubmitAgain
  | UpdateData
  | ReportKey;

/**
 * Some tasks of a graph that is too large for one message, and some of the requested keys. Parts come in
 * their order, right before the `update-graph` with the rest.
 */
export type GraphPart = Omit<UpdateGraph, 'op' | 'client' | 'firstRunIds'> & {
  readonly op: 'graph-part';
};

/** A graph as clients submit it. */
export type SubmittedGraph = Omit<UpdateGraph, 'client' | 'firstRunIds'> & {
  /** Parts that came before. Default 0. */
  readonly parts?: Count;
};

/** A message of a client that becomes a stimulus when the host has stamped it with the sender. */
export type ClientReport =
  | GraphPart
  | SubmittedGraph
  | Unstamped<Exclude<ClientStimulus, RegisterClient | RemoveClient | UpdateGraph>, 'client'>;

/** The client leaves in good order: it will not come back, and nothing is kept for it. */
export interface CloseClient {
  readonly op: 'close-client';
}

/** All that a client may send besides requests. */
export type ClientMessage = ClientReport | CloseClient | DropParts;
