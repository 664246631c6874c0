import fc from 'fast-check';
import { it } from 'vitest';
import { validWorkers } from '../../../../core/kernel/placement/restrictions.ts';
import { SchedulerKernel } from '../../../../core/kernel/scheduler-kernel.ts';
import type { KernelOptions } from '../../../../core/kernel/options.ts';
import type { TaskState } from '../../../../core/state/task.ts';
import { check } from '../../../kit/check.ts';
import type { Unnamed } from '../../../kit/env.ts';
import { recordInShort } from '../../../kit/in-short.ts';
import {
  finishAny,
  healthyWorkers,
  type HostileStep,
  hostileSteps,
  stimulusOf,
} from '../../../kit/hostile-stimuli.ts';
import { MessageChecks } from '../../../kit/message-checks.ts';
import { makePorts } from '../../../kit/ports.ts';

/**
 * A failure prints its seed: `YARDMASTER_SEED=… npm test -- hostile-stimuli` repeats it, and
 * `YARDMASTER_RUNS=20000` looks harder.
 */
const { YARDMASTER_SEED: seed, YARDMASTER_RUNS: runs } = process.env;
const HOUR_MS = 3_600_000;

function effort(): fc.Parameters<unknown> {
  const repeat = seed === undefined ? {} : { seed: Number(seed) };
  if (runs !== undefined) return { numRuns: Number(runs), ...repeat };
  return { numRuns: 600, plugins: [fc.interruptAfterTimeLimit(3000)], ...repeat };
}

const options: fc.Arbitrary<Partial<KernelOptions>> = fc.record({
  allowedFailures: fc.constantFrom(0, 1),
  defaultRetries: fc.constantFrom(0, 1),
  avoidUsedWorkers: fc.boolean(),
  workerTtlMs: fc.constantFrom(20_000, Infinity),
  noWorkersTimeoutMs: fc.constantFrom(15_000, Infinity),
  sliceTransitions: fc.constantFrom(Infinity, 1, 4),
});

/** A kernel that has handled these stimuli, and checked all of its invariants after each of them. */
function withstand(
  steps: readonly HostileStep[],
  kernelOptions: Partial<KernelOptions>,
): SchedulerKernel {
  const ports = makePorts({ queuing: { workerSaturation: 1.1 } });
  const kernel = new SchedulerKernel({ ...kernelOptions, validate: true }, ports, 0);
  const checks = new MessageChecks(kernel);
  let nowMs = 0;
  steps.forEach((step, index) => {
    const stimulus = stimulusOf(step, kernel.cluster);
    const isNext = stimulus.op === 'continue-graph';
    const stimulusId = (isNext ? kernel.intake?.stimulusId : undefined) ?? `stimulus-${index}`;
    nowMs += step.seed % 50 === 0 ? 20_000 : 100;
    checks.before();
    checks.after(kernel.handle({ ...stimulus, stimulusId }, nowMs));
  });
  heal(kernel, nowMs);
  return kernel;
}

/** Everything that was broken works again, and whatever is asked for is done. */
function heal(kernel: SchedulerKernel, nowMs: number): void {
  let count = 0;
  const send = (stimulus: Unnamed, stimulusId = `heal-${count++}`): void => {
    kernel.handle({ ...stimulus, stimulusId }, nowMs);
  };
  while (kernel.intake !== undefined) send({ op: 'continue-graph' }, kernel.intake.stimulusId);
  const settle = (): void => {
    while (kernel.isUnsettled) send({ op: 'continue-settling' });
  };
  settle();
  for (const worker of healthyWorkers(kernel.cluster)) send(worker);
  for (const { address: worker, endingRuns } of kernel.cluster.workers.values()) {
    send({ op: 'worker-status-change', worker, status: 'running' });
    send({ op: 'runs-over', worker, runIds: [...endingRuns] });
  }
  settle();
  for (let left = 200; left > 0; left--) {
    const report = finishAny(kernel.cluster);
    if (report === undefined) break;
    send(report);
    settle();
  }
  const tasks = [...kernel.cluster.tasks.values()];
  // An address may have been taken by a worker of another name: then nothing suits some tasks.
  if (tasks.some((task) => task.state === 'no-worker' && !isSuitable(kernel, task))) return;
  for (const task of tasks) {
    const isStuck = task.isActive;
    const story = (): string => kernel.story(task.key).slice(-10).map(recordInShort).join('\n  ');
    check(!isStuck, () => `${task.key} is ${task.state} for ever:\n  ${story()}`);
  }
}

function isSuitable({ cluster }: SchedulerKernel, task: TaskState): boolean {
  const valid = validWorkers(cluster, task);
  return valid === undefined || valid.size > 0 || task.restrictions?.loose === true;
}

it(
  'whatever workers, clients and plugins say, the state stays consistent and what is asked for is done in the end',
  () => {
    fc.assert(
      fc.property(hostileSteps, options, (steps, kernelOptions) => {
        withstand(steps, kernelOptions);
      }),
      effort(),
    );
  },
  HOUR_MS,
);
