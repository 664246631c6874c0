/** The messages between the playground and its worker. */
import type { ReportData } from '../../../report/report-data.ts';

/** The cluster and its work; a link to the playground carries them, with the policy. */
export interface Settings {
  /** A shape with its size and costs, such as `shuffle:12@100ms,5MB`. */
  readonly workload: string;
  readonly workers: number;
  /** Of each worker. */
  readonly threads: number;
  /** Megabits per second of the link of each worker. */
  readonly link: number;
  /** Megabytes that each worker may hold; 0: unlimited. */
  readonly memory: number;
}

/** A run that a worker is asked for. */
export interface RunRequest {
  readonly settings: Settings;
  /** Source of a module that exports policies; undefined: the defaults decide. */
  readonly source: string | undefined;
}

/** The figures of a run, and what happened in it. */
export interface RunResult {
  readonly makespanS: number;
  readonly movedBytes: number;
  readonly peakWorkerBytes: number;
  readonly idleShare: number;
  readonly traceHash: string;
  readonly data: Pick<ReportData, 'history' | 'analysis'>;
  /** The faults of the policy, if it had any. */
  readonly faults?: { readonly count: number; readonly first: Fault };
}

/** A fault of the source of a policy, with its line if that is known. */
export interface Fault {
  readonly message: string;
  readonly line?: number | undefined;
}

export type RunAnswer = { readonly result: RunResult } | { readonly fault: Fault };
