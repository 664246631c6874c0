import { type ClientReport, YardmasterError } from '../../../core/api/index.ts';

/** These change nothing that a scheduler would have to remember. */
const FORGETTABLE: ReadonlySet<string> = new Set(['heartbeat-client', 'report-key']);

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
    if (first === undefined || FORGETTABLE.has(first.op)) return;
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

export function noJournal(): YardmasterError {
  return new YardmasterError(
    'ERR_JOURNAL',
    'the scheduler has no journal, or cannot write it any more, so nothing that is submitted outlives it; start it with --journal',
  );
}
