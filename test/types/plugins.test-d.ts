/** Compiles only while hooks that are async, or take what is not there, do not. */
import {
  definePlugin,
  defineNannyPlugin,
  defineWorkerPlugin,
  type SchedulerPlugin,
  type WorkerPlugin,
} from '../../core/api/index.ts';

const later = (): Promise<void> => Promise.resolve();

export class Sync implements SchedulerPlugin {
  readonly seen: string[] = [];
  taskTransition(): void {
    this.seen.push('x');
  }
  workerAdded(): number {
    return this.seen.push('y');
  }
  clientAdded(): string[] {
    return this.seen;
  }
  async close(): Promise<void> {
    await later();
  }
}

export class Async implements SchedulerPlugin {
  // @ts-expect-error a hook is synchronous
  async taskTransition(): Promise<void> {
    await later();
  }
}

export class AsyncOfWorker implements WorkerPlugin {
  // @ts-expect-error a hook is synchronous
  async statusChanged(): Promise<void> {
    await later();
  }
}

export const sync = definePlugin({
  name: 'sync',
  apiVersion: 1,
  setup: async () => {
    await later();
    return {
      graphUpdated() {
        /* Nothing is returned. */
      },
      workerAdded: (worker) => worker.name,
      workerRemoved: { order: 'pre', handler: (worker) => worker.nbytes },
      restarted: () => new Map(),
      close: later,
    };
  },
});

export const inPlugin = definePlugin({
  name: 'async',
  apiVersion: 1,
  // @ts-expect-error a hook is synchronous
  setup: () => ({ workerAdded: later }),
});

export const inAsyncSetup = definePlugin({
  name: 'async',
  apiVersion: 1,
  // @ts-expect-error a hook is synchronous, even if setup is not
  setup: async () => {
    await later();
    return { workerAdded: async () => later() };
  },
});

export const withOrder = definePlugin({
  name: 'async',
  apiVersion: 1,
  // @ts-expect-error a hook is synchronous
  setup: () => ({ workerAdded: { order: 'pre' as const, handler: later } }),
});

export const ofWorkers = defineWorkerPlugin({
  name: 'async',
  apiVersion: 1,
  // @ts-expect-error a hook is synchronous
  setup: () => ({ schedulerLost: later }),
});

export const ofNannies = defineNannyPlugin({
  name: 'async',
  apiVersion: 1,
  // @ts-expect-error a hook is synchronous
  setup: () => ({ processEnded: later }),
});

export const loading = definePlugin({
  name: 'loading',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    required: ['extra'],
    properties: {
      extra: { type: 'object', required: ['use'], properties: { use: { extension: true } } },
    },
  },
  load: (loader, { extra }) =>
    loader.loadAll({ entries: [extra], at: ['extra'], make: ({ source }) => source }),
  setup: ({ log }, _options, sources) => log.info({ first: sources[0]?.length }),
});
