/** Bugs planted into the kernel: the property of random stimuli has to find each of them. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { KernelScope } from '../../../../core/kernel/scope.ts';
import type { SchedulerKernel } from '../../../../core/kernel/kernel.ts';
import type { ToWorkerMessage } from '../../../../core/messages/to-worker.ts';
import { makePorts } from '../../../kit/ports.ts';
import { scenario } from '../../../kit/random-scenario.ts';
import { kernelFor, play } from '../../../kit/random-world.ts';

const RUNS = 2000;

type Plant = (scope: KernelScope, kernel: SchedulerKernel) => void;

/** Alters or drops messages to workers on their way out. */
const onMessages = (alter: (message: ToWorkerMessage) => ToWorkerMessage | undefined): Plant => {
  return ({ outbox }) => {
    const toWorker = outbox.toWorker.bind(outbox);
    outbox.toWorker = (worker, message) => {
      const altered = alter(message);
      if (altered !== undefined) toWorker(worker, altered);
    };
  };
};

const BUGS: Readonly<Record<string, Plant>> = {
  'recommendations to release a result get lost': (scope) => {
    const recommend = scope.recommend.bind(scope);
    scope.recommend = (task, target) => {
      if (target !== 'released' || task.state !== 'memory') recommend(task, target);
    };
  },
  'what failed does not follow a task that is retried': (scope) => {
    const recommend = scope.recommend.bind(scope);
    scope.recommend = (task, target) => {
      const isFollower = task.state === 'erred' && task.dependencies.length > 0;
      if (target !== 'waiting' || !isFollower) recommend(task, target);
    };
  },
  'a task that is moved keeps its place in the queue': ({ cluster }) => {
    cluster.queued.reorder = (task, change) => change(task);
  },
  'a run id is used again': onMessages((message) =>
    message.op === 'compute-task' ? { ...message, runId: 0 } : message,
  ),
  'holders of inputs are not named': onMessages((message) => {
    if (message.op !== 'compute-task') return message;
    const { dependencies } = message;
    const whoHas = dependencies.whoHas.map(() => []);
    return { ...message, dependencies: { ...dependencies, whoHas } };
  }),
  'workers are not told to free results': onMessages((message) =>
    message.op === 'free-keys' ? undefined : message,
  ),
  'copies that were dropped are not told': onMessages((message) =>
    message.op === 'remove-replicas' ? undefined : message,
  ),
  'the end of a run that was taken back goes unheard': (_scope, kernel) => {
    const handle = kernel.handle.bind(kernel);
    kernel.handle = (stimulus, nowMs) =>
      handle(stimulus.op === 'runs-over' ? { ...stimulus, runIds: [] } : stimulus, nowMs);
  },
  'clients do not hear of lost data': ({ outbox }) => {
    const toClient = outbox.toClient.bind(outbox);
    outbox.toClient = (client, message) => {
      if (message.op !== 'lost-data') toClient(client, message);
    };
  },
  'clients do not hear of failures': ({ outbox }) => {
    const toClient = outbox.toClient.bind(outbox);
    outbox.toClient = (client, message) => {
      if (message.op !== 'task-erred') toClient(client, message);
    };
  },
  'the queue hides its first task': ({ cluster }) => {
    cluster.queued.peek = () => undefined;
  },
  'a worker that runs again is not looked for in no-worker': ({ cluster }) => {
    cluster.unrunnable.keys = () => new Map<never, never>().keys();
  },
  'a worker is counted twice in the sums of the cluster': ({ cluster }) => {
    const add = cluster.addWorker.bind(cluster);
    cluster.addWorker = (worker) => {
      add(worker);
      cluster.totalThreads += worker.threadCount;
    };
  },
};

it.each(Object.entries(BUGS))('it is found when %s', (_name, plant) => {
  const broken = fc.property(scenario, (next) => {
    const kernel = kernelFor(next);
    plant(kernel['scope'], kernel);
    play(next, kernel);
  });
  const { failed, numRuns } = fc.check(broken, { numRuns: RUNS, endOnFailure: true });
  expect({ failed, numRuns }).toMatchObject({ failed: true });
});

it('it is found when chance decides', () => {
  const byChance = fc.property(scenario, (next) => {
    const [one, other] = [0, 1].map(() => {
      const kernel = kernelFor(next);
      const ports = makePorts({ policies: { workerSelection: { score: () => Math.random() } } });
      kernel.replacePorts(ports);
      return play({ ...next, steps: next.steps.filter(isNotPolicyChange) }, kernel).transcript;
    });
    expect(other).toEqual(one);
  });
  expect(fc.check(byChance, { numRuns: RUNS, endOnFailure: true }).failed).toBe(true);
});

function isNotPolicyChange({ what }: { readonly what: string }): boolean {
  return what !== 'replace-policies';
}
