import type { History, HistoryWorker, Run } from '../../../adapters/report/history.ts';

/** A run in brief: times in seconds, everything else has a default. */
export interface BriefRun extends Partial<Run> {
  readonly key: string;
  readonly startS: number;
  readonly stopS: number;
  readonly transferS?: number;
}

/** A history of these runs on workers of one thread each, which are there all the time. */
export function historyOf(
  runs: readonly BriefRun[],
  workers = 1,
  more: Partial<History> = {},
): History {
  const prefixes: string[] = [];
  const prefixOf = (key: string): number => {
    const name = key.replace(/-\d+$/, '');
    if (!prefixes.includes(name)) prefixes.push(name);
    return prefixes.indexOf(name);
  };
  const toS = Math.max(0, ...runs.map(({ stopS }) => stopS));
  const whole = runs.map(({ key, startS, stopS, transferS = 0, ...given }): Run => {
    const readyS = startS - transferS;
    const transfer = { action: 'transfer', startS: readyS, stopS: startS };
    return {
      ...{ key, prefix: prefixOf(key), worker: 0, readyS, assignedS: readyS, finishedS: stopS },
      ...{ movedBytes: 0, nbytes: 100, isError: false, lastInput: -1 },
      timings: [...(transferS === 0 ? [] : [transfer]), { action: 'compute', startS, stopS }],
      ...given,
    };
  });
  return {
    ...{ fromS: 0, toS, prefixes, runs: whole, omittedRuns: 0, memory: [], hosts: [], waiting: [] },
    bandwidths: { pairs: [], types: [] },
    ...{ failures: [], failureCount: 0, blamelessCount: 0 },
    workers: Array.from({ length: workers }, (_, number) => workerOf(number)),
    ...more,
  };
}

/** The worker of this number. */
export function workerOf(number: number, more: Partial<HistoryWorker> = {}): HistoryWorker {
  return {
    ...{ address: `tcp://w${number}:1`, name: `w${number}`, threads: 1, memoryLimitBytes: 0 },
    ...{ fromS: 0, peakBytes: 0, peakResultBytes: 0, peakSpilledBytes: 0 },
    ...more,
  };
}
