import type { Outbox } from '../../core/kernel/outbox.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { TraceMessage, TraceMessages } from './trace-format.ts';

/** Messages of a step by receiver, each as a line of text, sorted: ready to be compared. */
export type ComparableMessages = ReadonlyMap<string, readonly string[]>;

/** What may be sent, and what must be. */
export interface News {
  readonly allowed: ComparableMessages;
  readonly required: ComparableMessages;
}

export function comparable(messages: TraceMessages): ComparableMessages {
  const found = new Map<string, string[]>();
  for (const [receiver, list] of Object.entries(messages)) {
    // The duration in a message is an estimate for people; estimates are compared with the state.
    for (const message of list) add(found, receiver, { ...message, duration: undefined });
  }
  return sorted(found);
}

export function ownToWorkers(outbox: Outbox): ComparableMessages {
  const found = new Map<string, string[]>();
  for (const { worker, message } of outbox.toWorkers) {
    const told = fromWorkerMessage(message);
    if (told !== undefined) add(found, worker.address, told);
  }
  return sorted(found);
}

export function ownToClients(outbox: Outbox): ComparableMessages {
  const found = new Map<string, string[]>();
  for (const { client, message } of outbox.toClients) {
    add(found, client.key, fromClientMessage(message));
  }
  return sorted(found);
}

function add(found: Map<string, string[]>, receiver: string, message: TraceMessage): void {
  const lines = found.get(receiver) ?? [];
  found.set(receiver, lines);
  const { op, keys, ...rest } = message;
  // One message for several keys says the same as several messages.
  if (Array.isArray(keys)) for (const key of keys) lines.push(line({ op, key, ...rest }));
  else lines.push(line({ op, ...rest }));
}

function sorted(found: Map<string, string[]>): ComparableMessages {
  for (const lines of found.values()) lines.sort();
  return found;
}

function line(message: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(canonical(message));
}

function canonical(value: unknown): unknown {
  if (typeof value === 'number') return Math.round(value * 1e6) / 1e6;
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, canonical(inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Some messages are newer than the recording, or our own. */
function fromWorkerMessage(message: ToWorkerMessage): TraceMessage | undefined {
  switch (message.op) {
    case 'compute-task': {
      const { keys, nbytes, whoHas } = message.dependencies;
      return {
        op: message.op,
        key: message.key,
        priority: message.priority,
        whoHas: Object.fromEntries(keys.map((key, index) => [key, [...whoHas[index]!].sort()])),
        nbytes: Object.fromEntries(keys.map((key, index) => [key, nbytes[index]])),
        actor: message.actor ?? false,
        resources: message.resources ?? {},
      };
    }
    case 'free-keys':
    case 'steal-request':
    case 'remove-replicas':
      return { op: message.op, keys: message.keys };
    case 'acquire-replicas': {
      const { keys, nbytes, whoHas } = message.replicas;
      return {
        op: message.op,
        whoHas: Object.fromEntries(keys.map((key, index) => [key, [...whoHas[index]!].sort()])),
        nbytes: Object.fromEntries(keys.map((key, index) => [key, nbytes[index]])),
      };
    }
    case 'close':
      return { op: message.op };
    case 'remove-worker':
    case 'refresh-who-has':
    case 'set-priority':
    case 'extend-time-limits':
    case 'resume-run':
    case 'worker-status-change':
      return undefined;
  }
}

function fromClientMessage(message: ToClientMessage): TraceMessage {
  switch (message.op) {
    case 'task-erred': {
      const exception = schedulerFailureName(message.failure.exception);
      return { op: message.op, key: message.key, exception };
    }
    case 'key-in-memory':
    case 'lost-data':
    case 'task-retried':
      return { op: message.op, key: message.key };
    case 'cancelled-keys':
      return { op: 'cancelled-key', keys: message.keys };
    case 'data-refused':
    case 'restart':
      return { op: message.op };
  }
}

/** Recorded exceptions are `E` for those of tasks, and names for those of the scheduler. */
export function schedulerFailureName(exception: unknown): string {
  if (typeof exception === 'string') return exception;
  const { code } = exception as { code?: string };
  return code === 'ERR_KILLED_WORKER' ? 'KilledWorker' : 'other';
}

/** The first message that is missing or one too many, or undefined. */
export function compareMessages(
  direction: string,
  { allowed, required }: News,
  actual: ComparableMessages,
): string | undefined {
  for (const receiver of new Set([...required.keys(), ...actual.keys()])) {
    const sent = actual.get(receiver) ?? [];
    const unexpected = surplus(sent, allowed.get(receiver) ?? []);
    if (unexpected !== undefined) return `${direction} ${receiver}: unexpected ${unexpected}`;
    const missing = surplus(required.get(receiver) ?? [], sent);
    if (missing !== undefined) return `${direction} ${receiver}: missing ${missing}`;
  }
  return undefined;
}

/** The first of these that is not among the others, each counted once. */
function surplus(these: Iterable<string>, others: readonly string[]): string | undefined {
  const left = [...others];
  for (const message of these) {
    const index = left.indexOf(message);
    if (index < 0) return message;
    left.splice(index, 1);
  }
  return undefined;
}
