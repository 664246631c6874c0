/* eslint-disable @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-call -- what does not compile has no type */
/**
 * Mistakes of an author of extensions. It compiles only while the compiler finds each of them: where one compiles, its line
 * is an error itself.
 */
import {
  ACTIVE_MEMORY_MANAGER,
  defineNannyPlugin,
  definePlugin,
  defineWorkerPlugin,
  type SchedulerPlugin,
  tokens,
} from '../../adapters/app/entries/plugin.ts';
import {
  ActiveMemoryManagerPolicy,
  defineAmmPolicy,
  definePolicy,
  defineRule,
  drop,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../adapters/app/entries/policy.ts';
import {
  defineExecutor,
  defineStore,
  type Executor,
  type ResultStore,
} from '../../adapters/app/entries/executor.ts';
import { defineTransport, type Transport } from '../../adapters/app/entries/transport.ts';

const optionsSchema = {
  type: 'object',
  properties: {
    every: { type: 'integer', default: 1000 },
    prefix: { type: 'string' },
  },
} as const;
declare const transport: Transport;
declare const executor: Executor;
declare const store: ResultStore;

// Options.

export const otherType = definePlugin({
  name: 'other-type',
  apiVersion: 1,
  optionsSchema,
  setup({ log }, { every }) {
    // @ts-expect-error 1: the schema says that it is a number
    log.info({ every: every.toUpperCase() });
  },
});

export const unknownOption = definePolicy('workerSelection', {
  name: 'unknown-option',
  apiVersion: 1,
  optionsSchema,
  // @ts-expect-error 2: the schema has no such option
  create: ({ evry }) => ({ score: () => Number(evry) }),
});

export const contradiction = definePlugin({
  name: 'contradiction',
  apiVersion: 1,
  optionsSchema,
  // @ts-expect-error 3: the schema says otherwise
  setup(_context, options: { every: string }) {
    return { restarted: () => options.every };
  },
});

export const undescribed = definePolicy('workerSelection', {
  name: 'undescribed',
  apiVersion: 1,
  // @ts-expect-error 4: without a schema there are no options
  create: ({ depth }: { depth: number }) => ({ score: () => depth }),
});

export const perhapsMissing = defineWorkerPlugin({
  name: 'perhaps-missing',
  apiVersion: 1,
  optionsSchema,
  setup: (_context, { prefix }) => ({
    // @ts-expect-error 5: it is not required and has no default
    taskTransition: (key) => key.startsWith(prefix),
  }),
});

// Definitions.

// @ts-expect-error 6: it does not say for which version it was written
export const unversioned = definePlugin({ name: 'unversioned', setup: () => ({}) });

export const future = definePolicy('ordering', {
  name: 'future',
  // @ts-expect-error 7: there is no such version
  apiVersion: 2,
  create: () => ({ order: () => [] }),
});

export const misspeltField = defineTransport({
  name: 'misspelt-field',
  apiVersion: 1,
  // @ts-expect-error 8: it is called optionsSchema
  optionSchema: optionsSchema,
  create: () => transport,
});

export const hookInDefinition = definePlugin({
  name: 'hook-in-definition',
  apiVersion: 1,
  setup: () => ({}),
  // @ts-expect-error 9: hooks are what setup returns
  taskErred: () => undefined,
});

// Policies.

// @ts-expect-error 10: there is no such slot
export const unknownSlot = definePolicy('placement', {
  name: 'unknown-slot',
  apiVersion: 1,
  create: () => ({ score: () => 0 }),
});

export const otherSlot = definePolicy('queuing', {
  name: 'other-slot',
  apiVersion: 1,
  // @ts-expect-error 11: this is a policy of workerSelection
  create: () => ({ score: () => 0 }),
});

export const misspeltMember = definePolicy('workerSelection', {
  name: 'misspelt-member',
  apiVersion: 1,
  // @ts-expect-error 12: it is called admits
  create: () => ({ score: () => 0, admit: () => true }),
});

export const ofTwoSlots = definePolicy('workerSelection', {
  name: 'of-two-slots',
  apiVersion: 1,
  // @ts-expect-error 13: nothing asks a policy of this slot for generations
  create: () => ({ score: () => 0, generations: () => 0 }),
});

export const asyncScore = definePolicy('workerSelection', {
  name: 'async-score',
  apiVersion: 1,
  // @ts-expect-error 14: policies answer at once
  create: () => ({ score: () => Promise.resolve(0) }),
});

export const addressOfWorker = definePolicy('workerSelection', {
  name: 'address-of-worker',
  apiVersion: 1,
  // @ts-expect-error 15: the answer is the worker itself
  create: () => ({ select: (_task, [first]) => first?.address }),
});

export const swapped = definePolicy('workerSelection', {
  name: 'swapped',
  apiVersion: 1,
  // @ts-expect-error 16: the task comes first
  create: () => ({ score: (worker: WorkerView, task: TaskView) => worker.nbytes + task.nbytes }),
});

export const unknownReach = definePolicy('workerSelection', {
  name: 'unknown-reach',
  apiVersion: 1,
  // @ts-expect-error 17: reach wants both numbers
  create: () => ({ reach: { holders: 4 }, score: () => 0 }),
});

export const changesView = definePolicy('workerSelection', {
  name: 'changes-view',
  apiVersion: 1,
  create: () => ({
    score(_task, worker) {
      // @ts-expect-error 18: views are read-only
      worker.processing.clear();
      return 0;
    },
  }),
});

// Policies of the Active Memory Manager.

export class YieldsWorkers extends ActiveMemoryManagerPolicy {
  *run(): SuggestionGenerator {
    // @ts-expect-error 19: suggestions are made by replicate and drop
    yield [...this.manager.cluster.workers.values()][0];
  }
}

export const oneCandidate = defineAmmPolicy({
  name: 'one-candidate',
  apiVersion: 1,
  *run({ cluster }) {
    const [worker] = cluster.workers.values();
    const [task] = cluster.tasks.values();
    // @ts-expect-error 20: candidates are a list
    if (worker !== undefined && task !== undefined) yield drop(task, worker);
  },
});

export const misspeltQuestion = defineRule({
  name: 'misspelt-question',
  apiVersion: 1,
  // @ts-expect-error 20: it is called filter
  create: () => ({ holds: () => false, fliter: () => true }),
});

export const otherVerdict = defineRule({
  name: 'other-verdict',
  apiVersion: 1,
  // @ts-expect-error 20: a veto is { refuse: reason }
  create: () => ({ filter: () => ({ reason: 'it is full' }) }),
});

// Plugins.

export const unknownHook = definePlugin({
  name: 'unknown-hook',
  apiVersion: 1,
  // @ts-expect-error 21: it is called workerAdded
  setup: () => ({ restarted: () => 0, workerJoined: () => 0 }),
});

export const hookOfScheduler = defineWorkerPlugin({
  name: 'hook-of-scheduler',
  apiVersion: 1,
  // @ts-expect-error 22: only plugins of the scheduler have it
  setup: () => ({ statusChanged: () => 0, graphUpdated: () => 0 }),
});

export const asyncHook = defineNannyPlugin({
  name: 'async-hook',
  apiVersion: 1,
  // @ts-expect-error 23: hooks are synchronous
  setup: () => ({ processStarting: async () => Promise.resolve() }),
});

export class OtherArguments implements SchedulerPlugin {
  // @ts-expect-error 24: it is given a worker
  workerAdded(task: TaskView): void {
    task.key.toUpperCase();
  }
}

export const misuse = definePlugin({
  name: 'misuse',
  apiVersion: 1,
  setup(context) {
    // @ts-expect-error 25: a policy of another slot
    context.providePolicy('queuing', { score: () => 0 });
    // @ts-expect-error 25: there is no such stimulus
    context.enqueue({ op: 'log-events', topics: [] });
    // @ts-expect-error 25: it has no such method
    context.get(ACTIVE_MEMORY_MANAGER).run();
  },
});

// Parts.

export const otherClass = definePlugin({
  name: 'other-class',
  apiVersion: 1,
  // @ts-expect-error 26: the identity of a server is a text
  provide: [{ token: tokens.SERVER_ID, useClass: YieldsWorkers }],
  setup: () => ({}),
});

export const rawResult: Pick<Executor, 'run'> & Pick<ResultStore, 'has'> = {
  // @ts-expect-error 27: an executor says what kind of result it is
  run: () => Promise.resolve(new Uint8Array()),
  // @ts-expect-error 27: a store answers later
  has: () => true,
};

// Executors.

export const optionOfExecutor = defineExecutor({
  name: 'option-of-executor',
  apiVersion: 1,
  optionsSchema,
  // @ts-expect-error 28: the schema says that it is a number
  create: (_context, { every }) => ({ threadCount: every.length, ...executor }),
});

export const unfinished = defineExecutor({
  name: 'unfinished',
  apiVersion: 1,
  // @ts-expect-error 29: an executor can be closed
  create: ({ threadCount, run }) => ({ threadCount, run: (task, signal) => run(task, { signal }) }),
});

export const runsWithoutSignal = defineExecutor({
  name: 'runs-without-signal',
  apiVersion: 1,
  create: (context) => ({
    ...executor,
    // @ts-expect-error 30: a run is told its signal
    run: (task) => context.run(task, {}),
  }),
});

// Stores.

export const otherRead = defineStore({
  name: 'other-read',
  apiVersion: 1,
  create: () => ({
    ...store,
    // @ts-expect-error 31: a result has a type, too
    read: () => Promise.resolve(new Uint8Array()),
  }),
});
