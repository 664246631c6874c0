import {
  type ClientReport,
  type GraphTask,
  OPERATIONS,
  reportId,
  YardmasterError,
} from '../../core/api/index.ts';
import { inParts } from './message-limit.ts';

/** Tasks that travel in one message unless one graph alone has more bytes of arguments. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** A report without the id, which is given when it is sent. */
export type NewReport = ClientReport extends infer R
  ? R extends ClientReport
    ? Omit<R, 'stimulusId'>
    : never
  : never;

/** Tasks that are submitted together. */
interface Submission {
  readonly tasks: readonly GraphTask[];
  /** Keys whose results are wanted. */
  readonly keys: readonly string[];
  readonly fifoTimeoutMs: number;
  /** Of the arguments. */
  readonly nbytes: number;
  /** Key of the task that submits them, if one does. */
  readonly submittingTask?: string;
  /** True when a store may have results of them. */
  readonly mayBeKept?: boolean;
}

interface OpenGraph {
  readonly op: 'update-graph';
  readonly tasks: GraphTask[];
  readonly keys: string[];
  readonly fifoTimeoutMs: number;
  readonly submittingTask?: string;
}

/** A report with the number that its id gets. */
interface Queued {
  readonly report: NewReport;
  readonly number: number;
}

interface OpenRelease {
  readonly op: 'client-releases-keys';
  readonly keys: string[];
}

/**
 * Reports to the scheduler, in order. What is submitted in one turn of the event loop becomes one
 * graph, so that ten thousand calls cost one message and are ordered together.
 */
export class Outgoing {
  private queue: Queued[] = [];
  private graph: OpenGraph | undefined;
  private graphBytes = 0;
  private release: OpenRelease | undefined;
  private isScheduled = false;
  private isHeld = false;
  /** A queued graph has tasks whose results may be in a store. */
  private mustLookUp = false;
  /** Set while stores are asked: what comes meanwhile waits. */
  private lookUp: Promise<void> | undefined;
  private sequence = 0;
  /** Undefined: the scheduler has no journal. */
  private uncommitted: UncommittedReports | undefined;

  /**
   * @param client - that reports, by its key
   * @param deliver - called with at least one report, in the turn in which they came; sends all or throws
   * @param onUnsendable - called with a report that cannot be sent; the others are
   * @param messageBytesMax - of the connection at present. Default: no limit
   */
  constructor(
    private readonly client: string,
    private readonly deliver: (reports: readonly ClientReport[]) => void,
    private readonly onUnsendable: (report: NewReport, error: YardmasterError) => void,
    private readonly messageBytesMax: () => number = () => Infinity,
  ) {}

  submit(submission: Submission): void {
    const { tasks, keys, fifoTimeoutMs, nbytes, submittingTask, mayBeKept = false } = submission;
    this.mustLookUp ||= mayBeKept;
    let graph = this.graph;
    if (
      graph?.fifoTimeoutMs !== fifoTimeoutMs ||
      graph.submittingTask !== submittingTask ||
      this.graphBytes + nbytes > MESSAGE_BYTES_MAX
    ) {
      const within = submittingTask === undefined ? {} : { submittingTask };
      graph = { op: 'update-graph', tasks: [], keys: [], fifoTimeoutMs, ...within };
      this.graphBytes = 0;
      this.push(graph);
      this.graph = graph;
    }
    this.graphBytes += nbytes;
    for (const task of tasks) graph.tasks.push(task);
    for (const key of keys) graph.keys.push(key);
  }

  releaseKey(key: string): void {
    if (this.release === undefined) {
      const release: OpenRelease = { op: 'client-releases-keys', keys: [] };
      this.push(release);
      this.release = release;
    }
    this.release.keys.push(key);
  }

  report(report: NewReport): void {
    this.push(report);
  }

  /** Number of the report that was queued last; later ones have higher numbers. */
  get latest(): number {
    return this.sequence;
  }

  /** The scheduler has a journal, with the reports of this client up to this number; undefined: it has none. */
  begin(committed: number | undefined): void {
    if (committed === undefined) {
      this.uncommitted?.fail(noJournal());
      this.uncommitted = undefined;
    } else {
      this.uncommitted ??= new UncommittedReports();
      this.uncommitted.commit(committed);
    }
  }

  /** Nothing is sent any more. */
  end(error: Error): void {
    this.uncommitted?.fail(error);
    this.uncommitted = undefined;
  }

  /** The scheduler has written the reports up to this number. */
  commit(upTo: number): void {
    this.uncommitted?.commit(upTo);
  }

  /** Sends once more what the scheduler has not written, over a new connection. */
  sendAgain(): void {
    if (this.uncommitted === undefined) return;
    for (const reports of this.uncommitted.all()) this.deliver(reports);
  }

  /** @throws YardmasterError `ERR_JOURNAL` when the scheduler has no journal */
  async whenCommitted(): Promise<void> {
    this.flush();
    // What is looked up in a store of results first has no number yet.
    await this.whenSent;
    if (this.uncommitted === undefined) throw noJournal();
    return this.uncommitted.whenAll(this.sequence);
  }

  /** From now on everything waits. */
  hold(): void {
    this.isHeld = true;
  }

  /** Sends what has waited. */
  resume(): void {
    this.isHeld = false;
    this.flush();
  }

  /** Sends what is queued now. Never throws: it is called where no caller could catch. */
  flush(): void {
    if (this.lookUp !== undefined || this.queue.length === 0 || this.isHeld) return;
    if (!this.mustLookUp) {
      this.send();
      return;
    }
    this.mustLookUp = false;
    this.graph = undefined;
    const queue = [...this.queue];
    const asked = lookUpIn(queue).catch((error: unknown) => {
      process.emitWarning(
        `stores of results could not be asked: ${String(error)}`,
        'YardmasterClient',
      );
    });
    this.lookUp = asked.then(() => this.sendFirst(queue.length));
  }

  /** Resolves when all that was queued before is sent; undefined: it is. */
  get whenSent(): Promise<void> | undefined {
    return this.lookUp;
  }

  /** Sends the first messages. Those that came during a look-up may need one of their own, and shall not keep these waiting. */
  private sendFirst(count: number): Promise<void> | undefined {
    this.lookUp = undefined;
    if (this.isHeld) return undefined;
    const later = this.queue.splice(count);
    this.send();
    // What could not be sent may have been reported meanwhile.
    this.queue = [...later, ...this.queue];
    this.flush();
    return this.lookUp;
  }

  private send(): void {
    const queue = this.queue;
    this.queue = [];
    this.graph = undefined;
    this.release = undefined;
    if (this.tryDeliver(queue) === undefined) return;
    for (const queued of queue) {
      const error = this.tryDeliver([queued]);
      if (error !== undefined) this.onUnsendable(queued.report, error);
    }
  }

  /** @returns the reason if the reports could not be sent */
  private tryDeliver(queue: readonly Queued[]): YardmasterError | undefined {
    try {
      const named: Numbered[] = [];
      const all: ClientReport[] = [];
      for (const queued of queue) {
        const messages = this.named(queued);
        named.push({ number: queued.number, messages });
        all.push(...messages);
      }
      this.deliver(all);
      for (const { number, messages } of named) this.uncommitted?.add(number, messages);
      return undefined;
    } catch (thrown) {
      if (YardmasterError.is(thrown)) return thrown;
      return new YardmasterError('ERR_NOT_SERIALISABLE', String(thrown), {}, { cause: thrown });
    }
  }

  private named({ report, number }: Queued): readonly ClientReport[] {
    // The new field comes first: after a spread, Node 20 makes a hidden class for each single object.
    const named = { stimulusId: reportId(report.op, this.client, number), ...report };
    return named.op === 'update-graph' ? inParts(named, this.messageBytesMax()) : [named];
  }

  /** Only neighbours are merged: a graph after a release must stay after it. */
  private push(report: NewReport): void {
    this.graph = undefined;
    this.release = undefined;
    this.queue.push({ report, number: ++this.sequence });
    if (this.isScheduled) return;
    this.isScheduled = true;
    // In the check phase of this turn of the event loop, so that calls of several requests that one turn reads go together.
    setImmediate(() => {
      this.isScheduled = false;
      this.flush();
    });
  }
}

/** Leaves out what stores have, and what is not needed because of that. */
async function lookUpIn(queue: readonly Queued[]): Promise<void> {
  const { pruneKept } = await import('./kept-results.ts');
  for (const { report } of queue) {
    if (report.op === 'update-graph') await pruneKept(report as OpenGraph);
  }
}

/** One report, in as many messages as it takes. */
interface Numbered {
  readonly number: number;
  readonly messages: readonly ClientReport[];
}

interface Waiter {
  readonly number: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Reports that were sent to a scheduler and are not in its journal yet: it gets them again when it is back. */
export class UncommittedReports {
  private reports: Numbered[] = [];
  private waiters: Waiter[] = [];
  private committed = 0;

  /** @param messages - of one report, with the number in their id */
  add(number: number, messages: readonly ClientReport[]): void {
    const [first] = messages;
    if (first === undefined || !OPERATIONS[first.op].isSentAgain) return;
    this.reports.push({ number, messages });
  }

  commit(upTo: number): void {
    if (upTo > this.committed) this.committed = upTo;
    const { reports } = this;
    let count = 0;
    while (count < reports.length && (reports[count] as Numbered).number <= upTo) count++;
    if (count > 0) this.reports = reports.slice(count);
    this.resolveWaiters();
  }

  all(): (readonly ClientReport[])[] {
    return this.reports.map(({ messages }) => messages);
  }

  /** Resolves when none is left up to this number. */
  whenAll(number: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiters.push({ number, resolve, reject });
      this.resolveWaiters();
    });
  }

  /** They will not be committed. */
  fail(error: Error): void {
    this.reports = [];
    for (const { reject } of this.waiters.splice(0)) reject(error);
  }

  private resolveWaiters(): void {
    if (this.waiters.length === 0) return;
    const first = this.reports[0]?.number ?? Infinity;
    const open = this.waiters.filter(({ number }) => number >= first);
    for (const { number, resolve } of this.waiters) if (number < first) resolve();
    this.waiters = open;
  }
}

function noJournal(): YardmasterError {
  return new YardmasterError(
    'ERR_JOURNAL',
    'the scheduler has no journal, or cannot write it any more, so nothing that is submitted outlives it; start it with --journal',
  );
}
