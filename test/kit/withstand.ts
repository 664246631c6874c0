import fc from 'fast-check';
import type { KernelOptions, KernelPorts } from '../../core/kernel/ports.ts';
import { validWorkers } from '../../core/kernel/restrictions.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { TaskState } from '../../core/state/task.ts';
import { check } from './check.ts';
import type { Unnamed } from './env.ts';
import { finishAny, healthyWorkers, type HostileStep, stimulusOf } from './hostile-stimuli.ts';
import { recordInShort } from './in-short.ts';
import { MessageChecks } from './message-checks.ts';
import { makePorts } from './ports.ts';

/** A configuration of a kernel under attack. */
export interface Configuration extends Partial<KernelOptions> {
  readonly workerSaturation: number;
}

export const configurations: fc.Arbitrary<Configuration> = fc.record({
  workerSaturation: fc.constantFrom(1.1, Infinity),
  allowedFailures: fc.constantFrom(0, 1),
  defaultRetries: fc.constantFrom(0, 1),
  avoidUsedWorkers: fc.boolean(),
  workerTtlMs: fc.constantFrom(20_000, Infinity),
  noWorkersTimeoutMs: fc.constantFrom(15_000, Infinity),
  sliceTransitions: fc.constantFrom(Infinity, 1, 4),
});

/** A kernel that has handled these stimuli, and checked all of its invariants after each of them. */
export function withstand<Kernel extends SchedulerKernel>(
  steps: readonly HostileStep[],
  { workerSaturation, ...kernelOptions }: Configuration,
  makeKernel: (options: Partial<KernelOptions>, ports: KernelPorts) => Kernel,
): Kernel {
  const ports = makePorts({ queuing: { workerSaturation } });
  const kernel = makeKernel({ ...kernelOptions, validate: true }, ports);
  const checks = new MessageChecks(kernel);
  let nowMs = 0;
  steps.forEach((step, index) => {
    const stimulus = stimulusOf(step, kernel.cluster);
    const stimulusId = `stimulus-${index}`;
    nowMs += step.seed % 50 === 0 ? 20_000 : 100;
    checks.before();
    checks.after(kernel.handle({ ...stimulus, stimulusId }, nowMs));
  });
  heal(kernel, nowMs);
  return kernel;
}

/** The kernel of production. */
export function usualKernel(options: Partial<KernelOptions>, ports: KernelPorts): SchedulerKernel {
  return new SchedulerKernel(options, ports, 0);
}

/** Everything that was broken works again, and whatever is asked for is done. */
function heal(kernel: SchedulerKernel, endMs: number): void {
  let count = 0;
  let nowMs = endMs;
  const send = (stimulus: Unnamed): void => {
    kernel.handle({ ...stimulus, stimulusId: `heal-${count++}` }, nowMs);
  };
  const settle = (): void => {
    for (let left = 10_000; kernel.isUnsettled; left--) {
      check(left > 0, () => 'what long stimuli have left never ends');
      send({ op: 'continue' });
    }
  };
  settle();
  for (const worker of healthyWorkers(kernel.cluster)) send(worker);
  for (const { address: worker, endingRuns, lingeringRuns } of kernel.cluster.workers.values()) {
    send({ op: 'worker-status-change', worker, status: 'running' });
    send({ op: 'runs-over', worker, runIds: [...endingRuns, ...lingeringRuns] });
  }
  settle();
  for (let left = 200; left > 0; left--) {
    const report = finishAny(kernel.cluster);
    if (report === undefined && kernel.wakeAtMs === undefined) break;
    nowMs = Math.max(nowMs, kernel.wakeAtMs ?? 0);
    send(report ?? { op: 'continue' });
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
