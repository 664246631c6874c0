import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { recordingHistory } from '../../../adapters/app/past.ts';
import { collecting, type Report, reportOf, RunCollector } from '../../../adapters/report/index.ts';
import { Simulation, type SimulationOptions } from '../../../adapters/simulator/index.ts';
import { type CostedTask, graphWorkload } from '../../../adapters/workloads/workload.ts';
import { spin } from '../dashboard/fixtures/tasks.mjs';

type GraphTask = ReturnType<typeof graphWorkload>['tasks'][number];

interface Job extends SimulationOptions {
  readonly tasks: readonly CostedTask[];
  /** Adds to each task as it is submitted. */
  readonly change?: (task: GraphTask) => Partial<GraphTask>;
  /** Keeps every result instead of those that no task needs. Default false. */
  readonly keepsAll?: boolean;
  /** The report is made after so many milliseconds. Default: when all is done. */
  readonly afterMs?: number;
}

/** Runs a job on a simulated cluster, and reports about it. */
async function reportFor(job: Job): Promise<Report> {
  const { tasks, change, keepsAll, afterMs, ...options } = job;
  const simulation = await Simulation.start({ ...options, heartbeatMs: 100 });
  const collector = new RunCollector(() => simulation.nowMs);
  await simulation.scheduler.addPlugin(collecting(collector));
  const wanted = keepsAll === true ? tasks.map(({ key }) => key) : undefined;
  const workload = graphWorkload('job', tasks, { wanted });
  const changed = workload.tasks.map((task) => ({ ...task, ...change?.(task) }));
  simulation.submit({ ...workload, tasks: changed });
  await (afterMs === undefined ? simulation.run() : simulation.pass(afterMs));
  const report = reportOf(collector.finish(simulation.kernel.cluster));
  await simulation.close();
  return report;
}

/** Equal tasks that need nothing. */
function equal(count: number, durationS: number, prefix = 'work'): CostedTask[] {
  return Array.from({ length: count }, (_, k) => ({ key: `${prefix}-${k}`, durationS, prefix }));
}

const LOADS = equal(6, 0, 'load').map(({ key }) => key);

const first = ({ findings }: Report): string | undefined => findings[0]?.rule;

/** More programs than processors, which do nothing but occupy them. */
function burners(): ChildProcess[] {
  const count = 2 * availableParallelism();
  return Array.from({ length: count }, () => spawn(process.execPath, ['-e', 'for (;;);']));
}

it('contention: other programs occupy the processors, as a recording of real workers shows', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-causes-'));
  const record = join(folder, 'run.ylog');
  const burning = burners();
  try {
    const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, record });
    const client = await cluster.client();
    await client.gather(
      client.map(
        spin,
        Array.from({ length: 24 }, (_, k) => 300 + k),
      ),
    );
    await cluster.close();
  } finally {
    for (const one of burning) one.kill('SIGKILL');
  }
  const report = reportOf((await recordingHistory(record)).history);
  rmSync(folder, { recursive: true });
  expect(first(report)).toBe('contention');
  expect(report.findings[0]?.title).toBe('Other programs kept the machine busy');
}, 60_000);

describe('the first finding is the cause that was planted', () => {
  it('small-tasks: a thousand calls of half a millisecond', async () => {
    const report = await reportFor({
      tasks: equal(1000, 0.0005),
      durations: { schedulerMs: 0.5 },
      workers: 4,
    });
    expect(first(report)).toBe('small-tasks');
    expect(report.findings[0]?.remedy).toContain("chunk: 'auto'");
  });

  it('hand-out: each thread has one task, and the next one comes over a slow network', async () => {
    const report = await reportFor({
      tasks: equal(100, 0.2),
      network: { latencyMs: 10 },
      config: {
        scheduler: { policies: { queuing: { use: 'root-ish', options: { workerSaturation: 1 } } } },
      },
    });
    expect(first(report)).toBe('hand-out');
    expect(report.findings[0]?.text).toContain('a thread was idle for 20 ms on average');
    expect(report.findings[0]?.remedy).toContain('raise the option workerSaturation');
  });

  it('late-start: the only worker joins ten seconds after the tasks', async () => {
    const report = await reportFor({
      tasks: equal(4, 1),
      workers: 0,
      faults: [{ kind: 'join', atMs: 10_000, threads: 4 }],
    });
    expect(first(report)).toBe('late-start');
    expect(report.findings[0]?.text).toMatch(/No worker was there for the first (10|9\.\d+) s/);
    expect(report.findings[0]?.cost).toMatch(/^(10|9\.\d+) s, 9\d % of the time$/);
  });

  it('unfinished: one task of many still runs, and one waits for what no worker offers', async () => {
    const usual = equal(9, 0.5, 'crunch');
    const report = await reportFor({
      tasks: [...usual, { key: 'crunch-9', durationS: 900, prefix: 'crunch' }, ...equal(1, 1)],
      worker: { threads: 2 },
      change: ({ key }) => (key === 'work-0' ? { resources: { GPU: 1 } } : {}),
      afterMs: 300_000,
    });
    expect(first(report)).toBe('straggler');
    expect(report.findings[0]?.text).toContain('crunch-9 has run for 5 min on w');
    expect(report.summary[0]).toContain('; 2 tasks had not ended.');
    const unfinished = report.findings.find(({ rule }) => rule === 'unfinished');
    expect(unfinished?.text).toContain('No worker takes 1 task, such as work-0: ');
    expect(unfinished?.text).toMatch(
      /1 task runs far longer than usual: crunch-9 for 5 min on w\d, where 9 before took 500 ms\./,
    );
  });

  it('straggler: the one that still runs has begun, and the others have ended, before the report', async () => {
    const simulation = await Simulation.start({ workers: 2, heartbeatMs: 100 });
    const tasks = [...equal(20, 0.5), { key: 'work-20', durationS: 900, prefix: 'work' }];
    simulation.submit(graphWorkload('job', tasks, {}));
    await simulation.pass(20_000);
    const collector = new RunCollector(() => simulation.nowMs);
    await simulation.scheduler.addPlugin(collecting(collector));
    await simulation.pass(5000);
    const report = reportOf(collector.finish(simulation.kernel.cluster));
    await simulation.close();
    expect(first(report)).toBe('straggler');
    expect(report.findings[0]?.text).toMatch(
      /^work-20 has run for 20 s on w\d; usual for work is 500 ms\.$/,
    );
    expect(report.summary[1]).toMatch(
      /^Threads were idle for 50 % .*: w\d (0|100) %, w\d (0|100) %/,
    );
    expect(report.findings.map(({ rule }) => rule)).toEqual(['straggler', 'unfinished']);
  });

  it('restrictions: tasks that are bound to one worker wait there for large inputs of others', async () => {
    const blocks = Array.from({ length: 4 }, (_, k) => ({
      key: `block-${k}`,
      durationS: 0.1,
      nbytes: 2e8,
    }));
    const joins = Array.from({ length: 40 }, (_, k) => ({
      ...{ key: `join-${k}`, durationS: 0.01, prefix: 'join' },
      needs: [`block-${k % 4}`],
    }));
    const report = await reportFor({
      tasks: [...blocks, ...joins],
      workers: 4,
      change: ({ key }) => ({ workers: [key.startsWith('join') ? 'w3' : 'w1'] }),
    });
    const rules = report.findings.map(({ rule }) => rule);
    expect(rules.slice(0, 2)).toEqual(['restrictions', 'transfers']);
    expect(rules).not.toContain('small-tasks');
  });

  it('restrictions: a limit lets one of many start a minute', async () => {
    const limit = { name: 'api', max: 3, intervalMs: 60_000 };
    const report = await reportFor({
      tasks: equal(40, 1),
      workers: 2,
      change: () => ({ limit }),
      afterMs: 10_000,
    });
    expect(first(report)).toBe('restrictions');
    expect(report.findings[0]?.text).toContain('work by the limit api for ');
  });

  it('saturation: workers are given half of what they could run', async () => {
    const report = await reportFor({
      tasks: equal(40, 1),
      worker: { threads: 4 },
      workers: 2,
      config: {
        scheduler: {
          policies: { queuing: { use: 'root-ish', options: { workerSaturation: 0.5 } } },
        },
      },
    });
    expect(first(report)).toBe('saturation');
    expect(report.findings[0]?.text).toContain(
      'no worker was given more than 0.5 tasks per thread',
    );
  });

  it('restrictions: all tasks may run on one of four workers', async () => {
    const report = await reportFor({
      tasks: equal(40, 1),
      workers: 4,
      change: () => ({ workers: ['w1'] }),
    });
    expect(first(report)).toBe('restrictions');
    expect(report.findings[0]?.text).toContain('work by a restriction to certain workers');
  });

  it('restrictions: so do tasks of which none has ended', async () => {
    const report = await reportFor({
      tasks: equal(40, 100),
      workers: 4,
      change: () => ({ workers: ['w1'] }),
      afterMs: 10_000,
    });
    expect(first(report)).toBe('restrictions');
    expect(report.findings[0]?.cost).toMatch(/, 7\d % of the time$/);
  });

  it('restrictions: a limit lets two tasks run at a time', async () => {
    const report = await reportFor({
      tasks: equal(40, 1),
      workers: 8,
      change: () => ({ limit: { name: 'api', max: 2 } }),
    });
    expect(first(report)).toBe('restrictions');
    expect(report.findings[0]?.text).toContain('the limit api');
  });

  it('placement: without work stealing tasks stay where their large input is', async () => {
    const report = await reportFor({
      tasks: [
        ...equal(6, 0.01, 'load').map((task) => ({ ...task, nbytes: 5e9 })),
        ...equal(40, 0.3).map((task) => ({ ...task, needs: LOADS })),
      ],
      change: ({ key }) => (LOADS.includes(key) ? { workers: ['w1'] } : {}),
      workers: 4,
      config: { scheduler: { workStealing: { start: false } } },
    });
    expect(first(report)).toBe('placement');
  });

  it('memory: results are written to a disk that is slower than the tasks', async () => {
    const tasks = equal(200, 0.1).map((task) => ({ ...task, nbytes: 20e6 }));
    const report = await reportFor({
      tasks,
      keepsAll: true,
      workers: [{ threads: 2, memoryLimitBytes: 1.5e9 }],
      diskBandwidth: 50e6,
    });
    expect(first(report)).toBe('memory');
    expect(report.findings[0]?.text).toMatch(/paused for \d/);
  });

  it('transfers: a chain of pairs exchanges large results', async () => {
    const tasks: CostedTask[] = equal(8, 0.2, 'load').map((task) => ({ ...task, nbytes: 200e6 }));
    for (const k of Array.from({ length: 8 }, (_, index) => index)) {
      const needs = [`load-${k}`, `load-${(k + 1) % 8}`];
      tasks.push({ key: `join-${k}`, durationS: 0.2, needs });
    }
    const report = await reportFor({ tasks, workers: 8, network: { bandwidth: 100e6 } });
    expect(first(report)).toBe('transfers');
    expect(report.findings[0]?.text).toMatch(/\d+ % of the critical path is fetching/);
  });

  it('straggler: one of forty takes a hundred times as long', async () => {
    const tasks = equal(40, 0.1).map((task, k) => (k === 39 ? { ...task, durationS: 10 } : task));
    const report = await reportFor({ tasks, workers: 4 });
    expect(first(report)).toBe('straggler');
    expect(report.findings[0]?.text).toContain('work-39 ran for 10 s');
  });

  it('slow-worker: one worker of four needs three times as long', async () => {
    const speeds = [1, 1, 1, 1 / 3];
    const report = await reportFor({
      tasks: equal(120, 0.5),
      workers: speeds.map((speed) => ({ speed })),
    });
    expect(first(report)).toBe('slow-worker');
    expect(report.findings[0]?.title).toBe('w4 is slow');
  });

  it('tail: nine equal tasks on eight threads', async () => {
    const report = await reportFor({ tasks: equal(9, 2), workers: 8 });
    expect(first(report)).toBe('tail');
  });

  it('serial: a long preparation before many tasks', async () => {
    const report = await reportFor({
      tasks: [
        { key: 'prepare-0', durationS: 10 },
        ...equal(40, 0.2).map((task) => ({ ...task, needs: ['prepare-0'] })),
      ],
      workers: 4,
    });
    expect(first(report)).toBe('serial');
    expect(report.findings[0]?.text).toMatch(/^The longest such stretch lasted 10 s/);
    expect(report.findings[0]?.remedy).toContain('Make prepare faster');
  });

  it('serial: a chain, beside tasks that nothing needs and no worker may run', async () => {
    const steps = Array.from({ length: 20 }, (_, k) => ({
      ...{ key: `step-${k}`, durationS: 0.9, needs: k === 0 ? [] : [`step-${k - 1}`] },
    }));
    const sums = steps.map(({ key }, k) => ({ key: `sum-${k}`, durationS: 0.1, needs: [key] }));
    const report = await reportFor({
      tasks: [...equal(4, 1, 'archive'), ...steps, ...sums],
      ...{ workers: 3, worker: { threads: 2 }, afterMs: 10_000 },
      change: ({ key }) => (key.startsWith('archive') ? { workers: ['tape'] } : {}),
    });
    expect(first(report)).toBe('serial');
    expect(report.findings[0]?.text).toContain('of step, each of which needs the one before it');
    expect(report.findings[0]?.cost).toMatch(/, [78]\d % of the time$/);
  });

  it('more-threads: many equal tasks on two threads', async () => {
    const report = await reportFor({ tasks: equal(100, 0.5), workers: 2 });
    expect(first(report)).toBe('more-threads');
  });

  it('more-threads: as many as there are tasks that wait, when work goes on', async () => {
    const report = await reportFor({ tasks: equal(100, 0.5), workers: 2, afterMs: 5000 });
    expect(first(report)).toBe('more-threads');
    expect(report.findings[0]?.remedy).toMatch(/^Start more workers: up to (8\d) threads/);
  });

  it('nothing, when every thread has one task', async () => {
    const report = await reportFor({ tasks: equal(12, 1), workers: 12 });
    expect(report.findings).toEqual([]);
  });
});
