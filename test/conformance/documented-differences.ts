import type { TaskState } from '../../core/state/task.ts';
import type { ExpectedState } from './snapshot.ts';
import type { TraceMessage, TraceMessages, TraceStimulus } from './trace-format.ts';

/**
 * Whether Dask is from here on in a state that the kernel leaves at once, or never gets into, on
 * purpose (the table "Where we differ from both" in docs/dask-compat.md): the traces have parted.
 */
export function hasParted(state: ExpectedState, preferring: ReadonlySet<string>): boolean {
  if (state.hasUnneededWork) return true;
  const running = state.workersThat(({ status }) => status === 'running');
  if (running.length === 0) return false;
  // Open slots are filled after every stimulus.
  const isSlotOpen = running.some(({ openSlots }) => openSlots === true);
  if (isSlotOpen && state.queued.length > 0) return true;
  // A task with only preferences takes any worker that registers.
  return state.unrunnable.some((key) => preferring.has(key));
}

/** How a task changed in a step of the recording. */
export interface Change {
  readonly key: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/**
 * Whether the kernel does in this step what newer versions do ("Where we follow HEAD"): they deal
 * queued tasks out best first, where 2022.12.1 takes the same tasks and open slots in reverse, and
 * they leave alone what was released when something that it depends on fails.
 */
export function followsNewer(
  changes: readonly Change[],
  state: ExpectedState,
  tasks: ReadonlyMap<string, TaskState>,
): boolean {
  const dealt = changes.filter(({ from, to }) => from === 'queued' && to === 'processing');
  const theirs = dealt.map(({ key }) => state.task(key)?.processingOn);
  const ours = dealt.map(({ key }) => tasks.get(key)?.processingOn?.address);
  if (String(theirs) !== String(ours) && String(theirs.sort()) === String(ours.sort())) return true;
  return changes.some(
    ({ key, from, to }) =>
      from === 'released' && to === 'erred' && tasks.get(key)?.state === 'released',
  );
}

/**
 * Keys of the tasks whose restrictions are only preferences, as far as the stimulus contains them.
 */
export function preferringKeys(stimulus: TraceStimulus): readonly string[] {
  if (stimulus.op !== 'updateGraph') return [];
  return stimulus.tasks.filter((task) => task.allowOtherWorkers === true).map(({ key }) => key);
}

/** What a step says about keys, before and after it. */
export interface Step {
  readonly stimulus: TraceStimulus;
  /** Keys of which the client must hear that they are cancelled, because it counted on them. */
  readonly wantedBefore: (client: string, key: string) => boolean;
  /** Whether the client wants the key, and this or its state is new. */
  readonly isNewWish: (client: string, key: string) => boolean;
}

/**
 * The messages that are news to this client. Dask repeats itself, reports keys to clients that do
 * not want them, and reports that data is lost right before it reports that the key is cancelled.
 */
export function newsAmong(
  messages: readonly TraceMessage[],
  client: string,
  { stimulus, wantedBefore, isNewWish }: Step,
): TraceMessage[] {
  const told = new Set<string>();
  return messages.filter((message) => {
    const { op } = message;
    const key = message['key'] as string;
    const line = JSON.stringify(message);
    if (told.has(line)) return false;
    told.add(line);
    if (op === 'key-in-memory' || op === 'task-erred') return isNewWish(client, key);
    if (op === 'lost-data')
      return !messages.some((m) => m.op === 'cancelled-key' && m['key'] === key);
    if (op !== 'cancelled-key' || wantedBefore(client, key)) return true;
    return stimulus.op === 'updateGraph' && stimulus.client === client;
  });
}

/** Dask says that data is lost also right before it says that the key is cancelled. */
export function withoutLostBeforeCancelled(toClients: TraceMessages = {}): TraceMessages {
  const kept = Object.entries(toClients).map(([client, messages]) => [
    client,
    messages.filter(({ op, key }) => op !== 'lost-data' || !isCancelled(messages, key)),
  ]);
  return Object.fromEntries(kept) as TraceMessages;
}

function isCancelled(messages: readonly TraceMessage[], key: unknown): boolean {
  return messages.some((message) => message.op === 'cancelled-key' && message['key'] === key);
}

/** What newer versions say as well: who cancels hears of it, also when others still want the key. */
export function courtesies(stimulus: TraceStimulus, client: string): TraceMessage[] {
  if (stimulus.op !== 'cancel' || stimulus.client !== client) return [];
  return stimulus.keys.map((key) => ({ op: 'cancelled-key', key }));
}
