import type { ClientMessage } from './from-client.ts';
import type { WorkerReport } from './from-worker.ts';
import type { SchedulerRequests } from './protocol.ts';
import type { Stimulus } from './stimulus.ts';

/**
 * The least key that permits something. The key of a client permits all that the key of a viewer does, and the
 * key of an admin permits everything; the key of a worker permits only what says `worker` or `any`. Where there
 * are no keys, and within the process, everything is permitted.
 */
export type Access = (typeof ACCESS_NAMES)[number];

/** Of {@link Access}. */
export const ACCESS_NAMES = ['any', 'worker', 'viewer', 'client', 'admin'] as const;

/** The rules for one kind of message, or for one kind of event within the scheduler. */
interface OperationRule {
  /** The least key whose owner may send the message; `nobody`: only the scheduler itself or a plugin says it. */
  readonly sender: 'worker' | 'viewer' | 'client' | 'nobody';
  /**
   * The journal keeps it. A journal holds what clients have said, and what cannot be learnt again from workers:
   * never a decision, and never a result, because the workers that hold results report them when they come back.
   */
  readonly isJournalled: boolean;
  /** A client sends it again to a scheduler that has come back and does not have it in its journal. */
  readonly isSentAgain: boolean;
  /** A failure of it ends what the client wants of the keys that it is about. False: it changes only how they run. */
  readonly failureEndsWants: boolean;
}

const ofWorker = {
  sender: 'worker',
  isJournalled: false,
  isSentAgain: false,
  failureEndsWants: false,
} as const;
const ofClient = {
  sender: 'client',
  isJournalled: true,
  isSentAgain: true,
  failureEndsWants: true,
} as const;
const internal = {
  sender: 'nobody',
  isJournalled: false,
  isSentAgain: false,
  failureEndsWants: true,
} as const;

/** The message changes nothing that a scheduler would have to remember. */
const unremembered = { isJournalled: false, isSentAgain: false } as const;

/**
 * Everything that may be said to the scheduler in a message, and everything that happens within it, with its
 * rules. The function that handles an operation stands in the kernel's table (`core/kernel/kernel.ts`), its
 * fields stand in the type.
 */
export const OPERATIONS = {
  // From workers.
  'task-finished': ofWorker,
  'task-erred': ofWorker,
  reschedule: ofWorker,
  'long-running': ofWorker,
  'run-paused': ofWorker,
  'run-resumes': ofWorker,
  'runs-over': ofWorker,
  'add-keys': ofWorker,
  'request-refresh-who-has': ofWorker,
  'steal-response': ofWorker,
  'release-worker-data': ofWorker,
  'worker-status-change': ofWorker,
  'log-event': ofWorker,
  'keep-alive': ofWorker,
  'heartbeat-worker': ofWorker,
  // From clients.
  'update-graph': ofClient,
  'graph-part': { ...ofClient, isJournalled: false }, // The graph that it belongs to is in the journal.
  'client-desires-keys': ofClient,
  'client-releases-keys': ofClient,
  'cancel-keys': ofClient,
  retry: ofClient,
  'set-priority': { ...ofClient, failureEndsWants: false },
  'submit-again': { ...ofClient, failureEndsWants: false },
  'update-data': ofClient,
  'report-key': { ...ofClient, ...unremembered },
  'heartbeat-client': { ...ofClient, ...unremembered, sender: 'viewer' },
  'close-client': { ...ofClient, ...unremembered, sender: 'viewer' },
  'drop-parts': { ...ofClient, ...unremembered },
  // Peers come and go.
  'register-worker': internal,
  'remove-worker': internal,
  'workers-lost': internal,
  'register-client': { ...internal, isJournalled: true },
  'remove-client': { ...internal, isJournalled: true },
  // From plugins.
  'move-replicas': internal,
  'want-replicas': { ...internal, isJournalled: true },
  'set-worker-status': internal,
  'steal-tasks': internal,
  'set-restrictions': { ...internal, isJournalled: true },
  'release-tasks': internal,
  'refuse-graph': { ...internal, isJournalled: true },
  // From the scheduler itself.
  'policies-replaced': internal,
  'scheduler-stalled': internal,
  'check-worker-ttl': internal,
  'check-no-workers-timeout': internal,
  'recall-prefixes': { ...internal, isJournalled: true },
  continue: internal,
  'forget-placements': internal,
  'begin-recovery': internal,
  'end-recovery': internal,
  'restore-tasks': internal,
  restart: { ...internal, isJournalled: true },
} as const satisfies OperationRules;

/** Finds a name that was cut out of an id: as the key of an object V8 would have to intern it first. */
const NAMES: ReadonlySet<string> = new Set(Object.keys(OPERATIONS));

/** The rules of an operation, or undefined for a name that comes from elsewhere and means none. O(1). */
export function ruleOf(op: string): OperationRule | undefined {
  return Object.hasOwn(OPERATIONS, op) ? OPERATIONS[op as Operation] : undefined;
}

/** Keys that the stimulus is about. */
export function keysOf(stimulus: Stimulus): readonly string[] {
  const { keys, items, key } = stimulus as {
    readonly keys?: readonly string[];
    readonly items?: readonly { readonly key: string }[];
    readonly key?: string;
  };
  return keys ?? items?.map((item) => item.key) ?? (key === undefined ? [] : [key]);
}

/** The least key that permits each request to the scheduler. A command has a role of its own besides. */
export const REQUESTS = {
  hello: 'any',
  ping: 'any',
  'register-worker': 'worker',
  'register-client': 'viewer',
  'who-has': 'viewer',
  gather: 'client',
  'get-part': 'client',
  command: 'any',
} as const satisfies Readonly<Record<keyof SchedulerRequests, Access>>;

type Operation = WorkerReport['op'] | ClientMessage['op'] | Stimulus['op'];

/** Each operation has a row, and what only one kind of peer sends has its sender in it. */
type OperationRules = {
  readonly [Op in Operation]: OperationRule & {
    readonly sender: Op extends WorkerReport['op']
      ? 'worker'
      : Op extends ClientMessage['op']
        ? 'viewer' | 'client'
        : 'nobody';
  };
};

/** The form in which the journal keeps a stimulus, before it is handled; undefined: it does not. */
export function journalledForm(stimulus: Stimulus, nextRunId: number): Stimulus | undefined {
  if (!OPERATIONS[stimulus.op].isJournalled) return undefined;
  if (stimulus.op !== 'update-graph') return stimulus;
  return { ...stimulus, firstRunIds: [nextRunId] };
}

/** Number of the report of a client that the stimulus is; undefined when it comes from elsewhere. */
export function reportNumberOf(stimulus: Stimulus): number | undefined {
  return 'client' in stimulus ? reportNumber(stimulus.client, stimulus.stimulusId) : undefined;
}

/** The number in an id that the client has given to a report; undefined: it is an id of somebody else. */
export function reportNumber(client: string, stimulusId: string): number | undefined {
  const end = stimulusId.lastIndexOf('-');
  const tail = tailOf(client);
  const begin = end - tail.length;
  if (stimulusId[begin - 1] !== '-' || !stimulusId.startsWith(tail, begin)) return undefined;
  // Of any operation: a graph that is refused becomes a release of its keys. An id of the scheduler names none before the
  // client: `remove-client-5` is no report of a client "client".
  if (!NAMES.has(stimulusId.slice(0, begin - 1))) return undefined;
  const number = Number(stimulusId.slice(end + 1));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The id that a client gives to a report. */
export function reportId(op: string, client: string, number: number): string {
  return `${op}-${tailOf(client)}-${number}`;
}

/** The part of a client's key that is in its ids. */
function tailOf(client: string): string {
  return client.slice(-12);
}
