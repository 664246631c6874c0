/**
 * The messages between the server of the dashboard and its pages. Both import these types, so that the compiler names every reader
 * of a field that changes.
 */
import type { AmmMoves } from '../../core/api/amm.ts';
import type { AmmStatus } from '../../core/api/amm-manager.ts';
import type { CallTree, TaskStack } from '../../core/api/executor.ts';
import type { ShadowReport, Why } from '../../core/api/insight.ts';
import type { Sentence } from '../../core/shared/waiting.ts';

/** Figures of the whole cluster. */
export interface Totals {
  readonly tasks: number;
  readonly workers: number;
  readonly threads: number;
  readonly clients: number;
  readonly queued: number;
  readonly unrunnable: number;
  readonly occupancyS: number;
  /** Tasks ever computed. */
  readonly finished: number;
  /** Of the scheduler's process; undefined in the first second, and of one that is gone. */
  readonly process?: ProcessRow | undefined;
  /** Of the Active Memory Manager; undefined when it is not there. */
  readonly moves?: readonly PolicyMoves[] | undefined;
}

/** Copies and drops of a policy until now. */
export type PolicyMoves = Pick<AmmMoves, 'policy' | 'copies' | 'drops'>;

/** The process of the scheduler in the last second. */
export interface ProcessRow {
  /** 100 for each core that was busy. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  /** Milliseconds by which its timers were late at most. */
  readonly loopDelayMs: number;
}

/** The tasks of a prefix: how many there are in each state, and what was computed. */
export interface PrefixRow {
  readonly name: string;
  /** The number of its colour. */
  readonly number: number;
  readonly released: number;
  readonly waiting: number;
  readonly 'no-worker': number;
  readonly queued: number;
  readonly processing: number;
  readonly memory: number;
  readonly erred: number;
  /** Tasks ever computed. */
  readonly finished: number;
  /** Mean duration of a task; -1: unknown. */
  readonly durationS: number;
  /** Bytes of all results that tasks of the prefix have ever produced. */
  readonly producedBytes: number;
  /** Seconds in which the rate of a limit lets those that wait for it begin; 0: none does. */
  readonly ratedS: number;
  /** One runs far longer than usual, so that nobody knows when it ends. */
  readonly isOverdue: boolean;
}

/** Tasks that have not begun, for whatever reason. */
export const waitingTasks = (row: PrefixRow): number => row.waiting + row.queued + row['no-worker'];

/** Tasks whose result was computed, or need not be any more. */
export const doneTasks = (row: PrefixRow): number => row.memory + row.released;

/** A worker, with its tasks and its memory in bytes. */
export interface WorkerRow {
  readonly address: string;
  readonly name: string;
  readonly status: string;
  readonly threads: number;
  /** Tasks that it was given, and those of them that run. */
  readonly processing: number;
  readonly running: number;
  readonly results: number;
  /** Those on disk included. */
  readonly resultBytes: number;
  /** -1: unknown. */
  readonly cpuPercent: number;
  /** Milliseconds by which its timers were late at most since its last heartbeat; -1: unknown. */
  readonly loopDelayMs: number;
  /** Bytes per second of its latest transfers; -1: there were none. */
  readonly bandwidth: number;
  /** Bytes per second of results, or of the machine of a worker of Dask; -1: unknown. */
  readonly received: number;
  readonly sent: number;
  readonly diskWritten: number;
  readonly diskRead: number;
  readonly managed: number;
  readonly unmanagedOld: number;
  readonly unmanagedRecent: number;
  readonly spilled: number;
  /** 0: none. */
  readonly memoryLimit: number;
  readonly occupancyS: number;
  /** Seconds since the scheduler last heard of the worker. */
  readonly silentS: number;
}

/** Bytes of a worker's memory that are used. What is on disk is none of them. */
export function memoryUsed({
  managed,
  unmanagedOld,
  unmanagedRecent,
}: Pick<WorkerRow, 'managed' | 'unmanagedOld' | 'unmanagedRecent'>): number {
  return managed + unmanagedOld + unmanagedRecent;
}

/** The figures of a worker that are shown over time. Below 0: unknown. */
export const OVER_TIME: readonly ((row: WorkerRow) => number)[] = [
  ({ cpuPercent }) => cpuPercent,
  memoryUsed,
  ({ loopDelayMs }) => loopDelayMs,
  ({ bandwidth }) => bandwidth,
  ({ occupancyS }) => occupancyS,
  ({ spilled }) => spilled,
  ({ received }) => received,
  ({ sent }) => sent,
  ({ diskWritten }) => diskWritten,
  ({ diskRead }) => diskRead,
];

/** Mean and largest value of each of {@link OVER_TIME}; null: unknown. */
export function overWorkers(rows: readonly WorkerRow[]): readonly (readonly (number | null)[])[] {
  return OVER_TIME.map((of) => {
    const known = rows.map(of).filter((value) => value >= 0);
    if (known.length === 0) return [null, null];
    const [sum, most] = known.reduce(([a, b], value) => [a + value, Math.max(b, value)], [0, 0]);
    return [sum / known.length, most];
  });
}

/** The rows that changed since the last frame: whole when they are new, else their key and the fields that changed. */
export interface TableChange<Row> {
  readonly changed: readonly Partial<Row>[];
  readonly gone: readonly string[];
}

/** A task that failed of its own, and not because of another one. */
export interface Failure {
  readonly key: string;
  /** Its name; '' when it did not fail on a worker that is still there. */
  readonly worker: string;
  readonly text: string;
  readonly atMs: number;
  /** The first tasks that failed because of it. */
  readonly because: string[];
}

/** The first and the newest failures, and how many there were in all. */
export interface FailureSummary {
  readonly first: readonly Failure[];
  readonly newest: readonly Failure[];
  readonly count: number;
}

/** The state of the cluster, or how it changed since the frame before. */
export interface StateFrame {
  readonly type: 'state';
  readonly n: number;
  readonly nowS: number;
  /** True when the tables are complete, and not a change. */
  readonly isWhole?: true;
  readonly totals: Totals;
  /** The tasks that run, in a sentence. */
  readonly running: Sentence;
  readonly waiting: readonly Sentence[];
  readonly failures: FailureSummary;
  readonly prefixes: TableChange<PrefixRow>;
  readonly workers: TableChange<WorkerRow>;
}

/** Many objects of one form as a list for each field, a third of the size. */
export type Columns<Item> = { readonly [Field in keyof Item]?: readonly Item[Field][] };

/** All items have the same fields. No items have no columns. */
export function toColumns<Item extends object>(items: readonly Item[]): Columns<Item> {
  const names = Object.keys(items[0] ?? {}) as (keyof Item)[];
  const columns = names.map((name) => [name, items.map((item) => item[name])]);
  return Object.fromEntries(columns) as Columns<Item>;
}

/** The inverse of {@link toColumns}. */
export function fromColumns<Item extends object>(columns: Columns<Item>): Item[] {
  const items: Item[] = [];
  for (const name of Object.keys(columns) as (keyof Item)[]) {
    columns[name]?.forEach((value, k) => ((items[k] ??= {} as Item)[name] = value));
  }
  return items;
}

/** An action of a task on a thread. */
export interface Span {
  readonly row: number;
  readonly prefix: number;
  /** Its number among the actions of the window. */
  readonly action: number;
  /** From the start of the window. */
  readonly startMs: number;
  readonly stopMs: number;
  readonly isError: boolean;
  readonly key: string;
}

/** The busiest prefix of a row in a part of the window. */
export interface Bin {
  readonly row: number;
  readonly bin: number;
  readonly prefix: number;
  readonly busyPercent: number;
  /** True when one of the tasks failed. */
  readonly hasError: boolean;
}

/** A thread of a worker in the task stream. */
export interface Lane {
  readonly worker: string;
  readonly lane: number;
  /** The name of a worker that has left. */
  readonly name?: string;
}

/** The part of the task stream that a page asks for. */
export interface StreamRequest {
  readonly fromS: number;
  readonly toS: number;
  /** Pixels across: more detail than that is not sent. */
  readonly width: number;
}

/** A part of the task stream: each span, or the busiest prefix of each pixel and those that run when there are too many. */
export interface StreamWindow {
  readonly fromS: number;
  readonly toS: number;
  /** The time of everything that is remembered. */
  readonly range: { readonly fromS: number; readonly toS: number } | null;
  readonly rows: readonly Lane[];
  readonly actions: readonly string[];
  readonly spans?: Columns<Span>;
  readonly bins?: Columns<Bin>;
  readonly binMs?: number;
  /** Tasks that run at present; undefined of what is over. */
  readonly running?: number;
  /** Spans in the window. */
  readonly count: number;
  /** Spans that are not remembered any more. */
  readonly dropped: number;
}

/** The answer to a request for a part of the task stream. */
export interface StreamAnswer extends StreamWindow {
  readonly type: 'stream';
  readonly id: number;
  /** The time at which recording began. */
  readonly sinceS: number;
}

export type PageMessage =
  /** The page has shown the frame, and can take another one. */
  | { readonly type: 'ack'; readonly n: number }
  /** The page wants to see another moment of a scheduler that is gone. */
  | { readonly type: 'at'; readonly atS: number }
  | ({ readonly type: 'stream'; readonly id: number } & StreamRequest);

/** A scheduler that is gone, as its pages describe it. */
export interface PastDescription {
  readonly kind: 'recording' | 'journal' | 'simulation';
  readonly title: string;
  /** Sentences about what cannot be seen, or is not certain. */
  readonly notes: readonly string[];
  readonly fromS: number;
  readonly toS: number;
  /** The moment that is shown first. */
  readonly startS: number;
  /** The time from the first run to the last one. */
  readonly stream: { readonly fromS: number; readonly toS: number };
}

/** Figures over the whole time of a scheduler that is gone. */
export interface PastSeries {
  readonly timesS: readonly number[];
  readonly finishedPerS: readonly number[];
  readonly processing: readonly number[];
  readonly waiting: readonly number[];
  /** Of each moment what {@link overWorkers} gives. */
  readonly system: readonly ReturnType<typeof overWorkers>[];
  readonly moves: readonly (readonly PolicyMoves[])[];
}

/** The number of tasks in each state that has any. */
export type TasksByState = Readonly<Record<string, number>>;

/** A graph of tasks, or of groups or prefixes of tasks when there are too many. */
export interface GraphAnswer {
  readonly kind: 'tasks' | 'groups' | 'prefixes';
  /** Tasks in all. */
  readonly total: number;
  readonly nodes: readonly { readonly name: string; readonly states: TasksByState }[];
  /** Numbers of nodes. */
  readonly edges: readonly { readonly from: number; readonly to: number }[];
}

/** A result, and the addresses of the workers that hold it. */
export interface HeldResult {
  readonly key: string;
  readonly nbytes: number;
  readonly workers: readonly string[];
}

/** The largest results of the cluster. */
export interface MemoryAnswer {
  readonly results: readonly HeldResult[];
  /** Bytes of the results of each prefix that were searched, each counted once. */
  readonly heldBytes: Readonly<Record<string, number>>;
  /** True when there are more results than were searched. */
  readonly isPart: boolean;
  /** Results with two or more copies. */
  readonly replicated: number;
  /** The status of the Active Memory Manager; null: there is none. */
  readonly amm: AmmStatus | null;
}

/** Bytes per second of large transfers, the slowest first. */
export interface BandwidthsAnswer {
  /** Addresses and names of the workers. */
  readonly pairs: readonly {
    readonly from: string;
    readonly fromName: string;
    readonly to: string;
    readonly toName: string;
    readonly bandwidth: number;
  }[];
  readonly types: readonly { readonly type: string; readonly bandwidth: number }[];
}

export interface WorkerAnswer {
  readonly address: string;
  readonly name: string;
  readonly host: string;
  readonly status: string;
  readonly language: string;
  readonly nbytes: number;
  readonly resources: readonly (readonly [name: string, amount: number])[];
  /** The first tasks, with the seconds for which each ran at the last heartbeat; -1: it does not run. */
  readonly processing: readonly (readonly [key: string, seconds: number])[];
  readonly processingCount: number;
  readonly results: number;
}

/** A line of a log; one that could not be read lacks its parts. */
export interface Line {
  readonly atMs?: number;
  readonly level?: string;
  readonly message?: string;
}

/** The answer about the newest transitions of tasks and lines of the log of the scheduler. */
export interface LogAnswer {
  readonly lines: readonly Line[];
  readonly story: Why['story'];
}

/** The answer about one task; null when the scheduler does not know it any more. */
export interface TaskAnswer {
  readonly why: Why;
  readonly task: {
    readonly nbytes: number;
    readonly type: string | null;
    /** With the stack, where it has one. */
    readonly error: string | null;
    /** Addresses of the workers on which it failed. */
    readonly workers: readonly string[];
    /** The task because of which it failed; null: it failed of its own, or did not. */
    readonly cause: string | null;
    readonly dependencies: readonly string[];
    readonly dependents: readonly string[];
  } | null;
}

/** The answer about the policies: those in charge, those in their shadow, and those to choose from. */
export interface PoliciesAnswer {
  readonly policies: Readonly<Record<string, string>>;
  readonly shadows: readonly ShadowReport[];
  readonly known: Readonly<Record<string, readonly string[]>>;
}

/** The answer about call stacks, by worker. */
export type StacksAnswer = readonly (readonly [
  address: string,
  answer: {
    readonly running?: readonly (TaskStack & { readonly key: string; readonly seconds: number })[];
    /** The reason why it did not answer. */
    readonly error?: string;
  },
])[];

/** The answer about what running tasks compute. */
export interface ProfileAnswer {
  /** Of all tasks; below it their prefixes, those with most samples first. Calls with a very small share are left out. */
  readonly tree: CallTree;
  readonly intervalMs: number;
  /** The time since which workers sample. */
  readonly sinceS: number;
  /** Workers that sample, and those that do not. */
  readonly workers: number;
  readonly silent: number;
  /** The reason of the first that does not, where it told one. */
  readonly reason?: string;
}

/** The answer of `report.explain`: why work that is under way takes as long as it does. */
export interface Explanation {
  readonly summary: readonly string[];
  /** The causes that explain most of the time first; none: nothing stands out. */
  readonly findings: readonly {
    readonly rule: string;
    readonly cost: string;
    readonly title: string;
    readonly text: string;
    readonly remedy: string;
  }[];
}
