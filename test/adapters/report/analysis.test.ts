import { describe, expect, it } from 'vitest';

import { recordingHistory } from '../../../adapters/app/past.ts';
import { analyse } from '../../../adapters/report/analysis.ts';
import { type Finding, findingsOf } from '../../../adapters/report/findings.ts';
import { reportOf } from '../../../adapters/report/report.ts';
import {
  type History,
  type HistoryWorker,
  packHistory,
  unpackHistory,
} from '../../../adapters/report/history.ts';
import { historyOf, workerOf } from './synthetic.ts';

const HISTORIES = new URL('../../histories/', import.meta.url);

function ruleIn(history: History, rule: string): Finding | undefined {
  return findingsOf(history, analyse(history)).find((finding) => finding.rule === rule);
}

describe('the figures of a piece of work', () => {
  it('the critical path goes back from the last run over the inputs that came last', () => {
    const { path } = analyse(
      historyOf([
        { key: 'load-0', startS: 0, stopS: 1 },
        { key: 'load-1', startS: 0, stopS: 3 },
        { key: 'sum-0', startS: 3.5, stopS: 4, readyS: 3, assignedS: 3, lastInput: 1 },
        { key: 'other-0', startS: 0, stopS: 2 },
      ]),
    );
    expect(path.runs).toEqual([1, 2]);
    expect([path.lengthS, path.time.runS, path.leastS]).toEqual([4, 3.5, 3.5]);
    expect(path.time.waitedS).toBeCloseTo(0.5);
  });

  it('idle is what threads did not compute while there was work, and a pause is none', () => {
    const { workers, idleShare, makespanS, activeS } = analyse(
      historyOf(
        [
          { key: 'a-0', startS: 0, stopS: 4 },
          { key: 'a-1', startS: 0, stopS: 1, worker: 1 },
          { key: 'a-2', startS: 100, stopS: 104 },
        ],
        2,
      ),
    );
    expect([makespanS, activeS]).toEqual([104, 8]);
    expect(workers.map((worker) => worker.idleShare)).toEqual([0, 0.875]);
    expect(idleShare).toBeCloseTo(7 / 16);
  });

  it('the time of a task is divided into queue, transfer, waiting and run', () => {
    const { time } = analyse(
      historyOf([
        { key: 'a-0', startS: 5, stopS: 8, transferS: 2, readyS: 0, assignedS: 2.5, finishedS: 9 },
      ]),
    );
    expect(time).toEqual({
      ...{ runS: 3, transferS: 2, diskS: 0, otherS: 0, queuedS: 2.5, waitedS: 1.5 },
    });
  });

  it('transfers of a run that overlap count once', () => {
    const timings = [
      { action: 'transfer', startS: 1, stopS: 3 },
      { action: 'compute', startS: 4, stopS: 5 },
      { action: 'transfer', startS: 0, stopS: 2 },
      { action: 'transfer', startS: 3.5, stopS: 4 },
    ];
    const { time, path } = analyse(historyOf([{ key: 'a-0', startS: 4, stopS: 5, timings }]));
    expect([time.transferS, time.runS, path.leastS]).toEqual([3.5, 1, 4.5]);
  });

  it('of nothing there is nothing to say', () => {
    const { summary, findings } = reportOf(historyOf([], 0));
    expect(summary).toEqual(['No task was computed in this time.']);
    expect(findings).toEqual([]);
  });

  it('survives being packed into columns', () => {
    const history = historyOf([
      { key: 'a-0', startS: 1, stopS: 2, transferS: 0.5 },
      { key: 'b-0', startS: 2, stopS: 4, isError: true, lastInput: 0 },
    ]);
    const packed = JSON.parse(JSON.stringify(packHistory(history))) as ReturnType<
      typeof packHistory
    >;
    expect(unpackHistory(packed)).toEqual(history);
  });
});

describe('what could be better', () => {
  const even = (count: number, length: number, key = 'a'): Parameters<typeof historyOf>[0] =>
    Array.from({ length: count }, (_, k) => {
      return { key: `${key}-${k}`, startS: k * length, stopS: (k + 1) * length };
    });

  it('nothing, when everything is even and busy', () => {
    expect(reportOf(historyOf(even(10, 1))).findings).toEqual([]);
  });

  it('the summary has the first failure, with its key and text', () => {
    const failures = [{ key: 'parse-7', text: 'Error: no number', atS: 2 }];
    const runs = [...even(3, 1), { key: 'parse-7', startS: 3, stopS: 5, isError: true }];
    const { summary, findings } = reportOf(
      historyOf(runs, 1, { failures, failureCount: 1, blamelessCount: 4 }),
    );
    expect(summary.at(-1)).toBe(
      '1 task failed, and 4 tasks because of that. The first was parse-7, after 2 s: Error: no number.',
    );
    expect(findings.map(({ rule, explainedS }) => [rule, explainedS])).toEqual([['failures', 2]]);
  });

  it('a worker that was lost, with what had to be done again', () => {
    const lost = workerOf(1, { toS: 2, lost: { recomputed: 5, restarted: 1 }, peakBytes: 2 ** 20 });
    const finding = ruleIn(
      historyOf(even(3, 1), 2, { workers: [workerOf(0), lost] }),
      'lost-workers',
    );
    expect(finding?.text).toContain('w1 was the first, after 2 s; its memory had reached 1.0 MiB');
    expect(finding?.text).toContain('1 task had to be started again, and 5 results computed again');
  });

  it('workers that died again and again, with the time without them', () => {
    const life = (name: string, fromS: number, toS: number): HistoryWorker => ({
      ...workerOf(1, { name, ownName: 'w1', fromS, toS, peakBytes: 97, memoryLimitBytes: 100 }),
      lost: { recomputed: 0, restarted: 1 },
    });
    const workers = [workerOf(0), life('w1', 0, 2), life('w1 #2', 3, 5)];
    const finding = ruleIn(historyOf(even(10, 1), 2, { workers }), 'lost-workers');
    expect(finding).toMatchObject({ title: '1 worker died 2 times', explainedS: 3 });
    expect(finding?.text).toMatch(/ Not back: w1\.$/);
    expect(finding?.remedy).toMatch(/^Its memory was full: /);
  });

  it('tasks that are too small, with how many to put together', () => {
    const runs = even(200, 0.01).map((run) => ({
      ...run,
      stopS: run.startS + 0.002,
      finishedS: run.stopS,
    }));
    const finding = ruleIn(historyOf(runs), 'small-tasks');
    expect(finding?.text).toContain('a thread was idle for 8 ms on average');
    expect(finding?.remedy).toContain('what about 80 do now');
  });

  it('no tasks whose results were read from a store: nobody can make them larger', () => {
    const runs = even(200, 0.01, 'a, kept').map((run) => ({ ...run, stopS: run.startS + 0.002 }));
    expect(ruleIn(historyOf(runs), 'small-tasks')).toBeUndefined();
  });

  it('a critical path that no worker can shorten', () => {
    const chain = even(5, 2).map((run, k) => ({ ...run, lastInput: k - 1 }));
    const finding = ruleIn(historyOf(chain, 3), 'serial');
    expect(finding?.explainedS).toBeCloseTo((2 / 3) * 10);
    expect(finding?.text).toContain(
      'stretch lasted 10 s; 100 % of the idle time was beside tasks of a, each of which needs the one before it',
    );
    expect(finding?.text).toContain(
      'The longest chain of tasks that need each other computed for 10 s',
    );
  });

  it('a worker with little to do beside busy ones', () => {
    const busy = even(20, 1);
    const idle = { key: 'a-99', startS: 0, stopS: 1, worker: 2 };
    const waiting = busy.map((run) => ({ ...run, readyS: 0, assignedS: 0 }));
    const finding = ruleIn(
      historyOf([...waiting, ...waiting.map((run) => ({ ...run, worker: 1 })), idle], 3),
      'placement',
    );
    expect(finding?.title).toBe('Tasks waited on busy workers while w2 had little to do');
    expect(finding?.text).toContain('w2 was idle for 95 % of the time and ran 1 task');
  });

  it('transfers that cost as much as the work', () => {
    const runs = even(10, 2).map((run) => ({
      ...run,
      startS: run.startS + 1,
      transferS: 1,
      movedBytes: 2 ** 20,
    }));
    const finding = ruleIn(historyOf(runs), 'transfers');
    expect(finding?.text).toContain(
      'fetched inputs for 10 s and computed for 10 s; 50 % of the critical path is fetching. 10.0 MiB',
    );
  });

  it('a worker that was paused while tasks waited', () => {
    const workers = [
      workerOf(0),
      workerOf(1, { peakBytes: 3 * 2 ** 28, memoryLimitBytes: 2 ** 30, pausedS: [[1, 4], [6]] }),
    ];
    const runs = even(10, 1).map((run) => ({ ...run, readyS: 0, assignedS: 0 }));
    const finding = ruleIn(historyOf(runs, 2, { workers }), 'memory');
    expect(finding?.explainedS).toBeCloseTo(6 / 2);
    expect(finding?.text).toContain('w1 used up to 768 MiB of its limit of 1.0 GiB');
    expect(finding?.text).toContain('was paused for 7 s');
  });

  it.each([
    [2 ** 29, 'Memory was short', 'release results'],
    [2 ** 10, 'Tasks took the memory, and results did not', 'See what tasks keep in their modules'],
  ])(
    'which it lacked for results, or for what tasks took: %d',
    (peakResultBytes, title, advice) => {
      const memory = { peakBytes: 2 ** 29, peakResultBytes, peakSpilledBytes: 1 };
      const workers = [workerOf(0), workerOf(1, { ...memory, pausedS: [[1, 8]] })];
      const runs = even(10, 1).map((run) => ({ ...run, readyS: 0, assignedS: 0 }));
      const finding = ruleIn(historyOf(runs, 2, { workers }), 'memory');
      expect([finding?.title, finding?.remedy]).toEqual([title, expect.stringContaining(advice)]);
    },
  );

  it('a machine that other programs keep busy, and one with more threads than processors', () => {
    const host = { host: 'here', cores: 2, measuredS: 10, fullS: 8, busyCoreS: 16, lostS: 6 };
    const runs = even(10, 1);
    const others = historyOf(runs, 1, { hosts: [{ ...host, threads: 1, ownCoreS: 2 }] });
    const finding = ruleIn(others, 'contention');
    expect([finding?.title, finding?.explainedS]).toEqual(['Other programs kept here busy', 6]);
    expect(finding?.text).toContain('For 80 % of the time its 2 processors were busy: 0.3 of them');
    const hosts = [{ ...host, threads: 3, ownCoreS: 15 }];
    const own = ruleIn(historyOf(runs, 3, { hosts }), 'contention');
    expect(own?.title).toBe('here has fewer processors than its workers have threads');
    const both = { hosts: [{ ...host, threads: 3, ownCoreS: 10 }] };
    expect(ruleIn(historyOf(runs, 3, both), 'contention')?.title).toBe(
      'Other programs kept here busy, and here has fewer processors than its workers have threads',
    );
  });

  it('processors that are busy although there are as many as threads', () => {
    const host = { host: 'local', cores: 2, measuredS: 10, fullS: 8, busyCoreS: 16, lostS: 6 };
    const hosts = [{ ...host, threads: 2, ownCoreS: 15 }];
    // There may be more threads on other machines.
    for (const threads of [2, 4]) {
      const history = historyOf(even(10, 1), threads, { hosts });
      expect(ruleIn(history, 'contention')?.title).toBe('The processors of the machine were busy');
    }
  });

  it('a straggler, by its key', () => {
    const runs = [...even(10, 1), { key: 'a-99', startS: 10, stopS: 18 }];
    const finding = ruleIn(historyOf(runs), 'straggler');
    expect(finding?.text).toBe('a-99 ran for 8 s on w0; usual for a is 1 s.');
  });

  it('a straggler that runs and waits, by the CPU of its worker', () => {
    const last = { key: 'a-99', startS: 10, stopS: 18, isOpen: true as const };
    const workers = [workerOf(0, { cpuPercent: 3 })];
    const finding = ruleIn(historyOf([...even(10, 1), last], 1, { workers }), 'straggler');
    expect(finding?.text).toMatch(/ Its worker uses 3 % of a processor: it waits for something/);
  });

  it('a worker that takes longer than others for the same', () => {
    const runs = [0, 1, 2].flatMap((worker) =>
      even(10, worker === 1 ? 2 : 1).map((run) => ({ ...run, worker })),
    );
    expect(ruleIn(historyOf(runs, 3), 'slow-worker')?.title).toBe('w1 is slow');
  });

  it('too few threads for what waits', () => {
    const runs = even(10, 1).map((run) => ({ ...run, readyS: 0, assignedS: run.startS }));
    expect(ruleIn(historyOf(runs), 'more-threads')?.remedy).toContain('up to 10 threads');
    const waiting = historyOf(runs, 1, { workers: [workerOf(0, { cpuPercent: 2 })] });
    expect(ruleIn(waiting, 'more-threads')?.remedy).toMatch(/^Give workers more threads, /);
  });

  it('results that were computed twice, with no worker to blame', () => {
    const runs = even(20, 1).map((run, k) => ({ ...run, key: `a-${k % 10}` }));
    expect(ruleIn(historyOf(runs), 'repetitions')?.text).toContain('10 of 20 runs repeated');
  });

  it('what explains more comes first, and little is left out', () => {
    const failures = [{ key: 'x-1', text: 'Error', atS: 2 }];
    const runs = [
      ...even(10, 1).map((run) => ({ ...run, startS: run.startS + 0.5, transferS: 0.5 })),
      { key: 'a-99', startS: 0, stopS: 45, worker: 1 },
    ];
    const history = historyOf(runs, 3, { failures, failureCount: 1 });
    const findings = findingsOf(history, analyse(history));
    expect(findings.map(({ rule }) => rule)).toEqual(['straggler', 'failures']);
  });
});

describe('the history of a recording', () => {
  it('has the runs, the worker that died, and the path to the last result', async () => {
    const file = new URL('tree-whose-worker-dies.ylog', HISTORIES).pathname;
    const { history, difference } = await recordingHistory(file);
    expect(difference).toBeUndefined();
    const { analysis, findings } = reportOf(history);
    expect([analysis.taskCount, analysis.runCount]).toEqual([63, 64]);
    expect(history.workers.map(({ lost }) => lost?.recomputed)).toEqual([undefined, 1, undefined]);
    const path = analysis.path.runs.map((number) => history.runs[number]?.key);
    expect(path).toHaveLength(6);
    expect(path.at(-1)).toBe(history.runs.at(-1)?.key);
    expect(findings.map(({ rule }) => rule)).toContain('lost-workers');
  });
});
