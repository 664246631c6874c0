import type { TaskView } from '../../core/api/index.ts';
import { asList, type Fields, omit } from './wire/codec.ts';
import type { Companion } from './companion.ts';
import { type Comm, NO_REPLY } from './wire/comm.ts';
import type { DaskContext, DaskExtension } from './context.ts';
import { durationMs } from './graph/materialized.ts';
import { pauseMs } from './calls.ts';
import { schedulerIdentity, workerIdentity } from './identity.ts';
import { requireClient } from './operations.ts';
import { failureForClient } from './wire/py-errors.ts';
import { Progress } from './tasks.ts';

// `feed`: what `progress(futures)` of Dask's clients shows while tasks run.

/** Between two looks whether the tasks have come. */
const LOOK_MS = 50;

const DEFAULT_INTERVAL_MS = 1000;

/**
 * Clients send functions of Python that look at the scheduler. Those of Dask's progress bars are known by
 * their names, and what they count is counted here; others run beside the scheduler.
 */
export function makeFeeds(context: DaskContext, python: Pick<Companion, 'ask'>): DaskExtension {
  const active = new Set<Progress>();
  let feedCount = 0;
  return {
    rpc: {
      feed: async (request, _context, comm) => {
        requireClient(context, comm, 'a feed');
        const bars = await progressBarsIn(context, request);
        if (bars === undefined) {
          await showPython(context, python, ++feedCount, request, comm);
          return NO_REPLY;
        }
        const progress = await progressFor(context, bars, comm);
        if (progress === undefined) return NO_REPLY;
        active.add(progress);
        try {
          await show(context, progress, intervalIn(request), comm);
        } finally {
          active.delete(progress);
        }
        return NO_REPLY;
      },
    },
    hooks: {
      taskTransition: ({ key }, start, finish) => {
        for (const progress of active) progress.onTransition(key, start, finish);
      },
    },
    restarted: () => {
      for (const progress of active) progress.stop();
    },
  };
}

async function show(
  context: DaskContext,
  progress: Progress,
  intervalMs: number,
  comm: Comm,
): Promise<void> {
  while (!comm.isClosed) {
    await comm.drained();
    comm.write(progress.describe());
    if (progress.isOver) return;
    await pauseMs(context, intervalMs);
  }
}

/** Runs a function of the client again and again until the client leaves. */
async function showPython(
  context: DaskContext,
  python: Pick<Companion, 'ask'>,
  feed: number,
  request: Fields,
  comm: Comm,
): Promise<void> {
  const { function: look, setup, teardown } = request;
  await python.ask(
    'feed.begin',
    { feed, function: look, setup: setup ?? null, teardown: teardown ?? null },
    'a feed',
  );
  try {
    while (!comm.isClosed) {
      await comm.drained();
      comm.write(await python.ask('feed.look', { feed }, 'a feed'));
      await pauseMs(context, intervalIn(request));
    }
  } finally {
    await python.ask('feed.end', { feed }, 'a feed');
  }
}

/** The request of a progress bar of Dask; undefined when it is another feed. */
async function progressBarsIn(
  { graphs }: DaskContext,
  { setup }: Fields,
): Promise<ProgressBars | undefined> {
  if (!(setup instanceof Uint8Array)) return undefined;
  const { bar, keys, complete } = await graphs.feed(setup);
  return bar === undefined ? undefined : { bar, keys, complete };
}

interface ProgressBars {
  readonly bar: 'single' | 'multiple';
  readonly keys: readonly unknown[];
  readonly complete: boolean;
}

/** Waits until the tasks are there. Undefined when the client has left meanwhile. */
async function progressFor(
  context: DaskContext,
  { bar, keys, complete }: ProgressBars,
  comm: Comm,
): Promise<Progress | undefined> {
  const texts = context.keys.textsOf(keys);
  while (!comm.isClosed) {
    await context.graphsSettled();
    const tasks = texts.map((key) => context.cluster.tasks.get(key));
    if (tasks.every((task): task is TaskView => task !== undefined)) {
      const request = { tasks, complete, byPrefix: bar === 'multiple' };
      return new Progress(request, (key) => exceptionOf(context, key));
    }
    await pauseMs(context, LOOK_MS);
  }
  return undefined;
}

function exceptionOf({ cluster, keys }: DaskContext, key: string): unknown {
  const task = cluster.tasks.get(key);
  const blame = task?.exceptionBlame ?? task;
  if (blame?.failure === undefined) return null;
  return failureForClient(blame.failure, blame.key, keys).exception;
}

function intervalIn({ interval }: Fields): number {
  return interval === undefined || interval === null ? DEFAULT_INTERVAL_MS : durationMs(interval);
}

// Events by topic, and their subscribers.

interface Logged {
  readonly atMs: number;
  readonly message: unknown;
}

/** Requests about events, and subscriptions of clients. */
export function makeEvents(context: DaskContext): DaskExtension {
  const { plugin, clients } = context;
  const subscribers = new Map<string, Set<string>>();
  const onEvent = (topic: string, message: unknown): void => {
    const ids = subscribers.get(topic);
    if (ids === undefined) return;
    const event = [context.nowS(), message];
    for (const id of ids) clients.get(id)?.send({ op: 'event', topic, event });
  };
  const stop = plugin.observe({
    eventLogged: onEvent,
    workerAdded: ({ address }) => {
      const message = { action: 'add-worker' };
      plugin.enqueue({ op: 'log-event', topics: [address], message });
      plugin.enqueue({
        op: 'log-event',
        topics: ['all'],
        message: { ...message, worker: address },
      });
    },
    graphUpdated: ({ client, tasks, stimulusId }) => {
      const message = {
        action: 'update-graph',
        stimulus_id: stimulusId,
        metrics: { tasks: tasks.length },
        status: 'OK',
      };
      plugin.enqueue({ op: 'log-event', topics: ['scheduler', client], message });
    },
  });
  return {
    rpc: {
      events: (request) => events(context, request['topic']),
      log_event: (request) => logEvent(context, request),
    },
    clientOps: {
      'subscribe-topic': ({ topic }, client) => {
        const name = String(topic);
        const ids = subscribers.get(name) ?? new Set();
        subscribers.set(name, ids.add(client.id));
      },
      'unsubscribe-topic': ({ topic }, client) => leave(subscribers, String(topic), client.id),
      'log-event': (message) => void logEvent(context, message),
    },
    clientGone: ({ id }) => {
      for (const topic of [...subscribers.keys()]) leave(subscribers, topic, id);
    },
    close: stop,
  };
}

function leave(subscribers: Map<string, Set<string>>, topic: string, client: string): void {
  const ids = subscribers.get(topic);
  if (ids?.delete(client) === true && ids.size === 0) subscribers.delete(topic);
}

function events({ plugin }: DaskContext, topic: unknown): unknown {
  const of = (name: string): unknown[] => {
    const logged = plugin.run('events', { topic: name }) as readonly Logged[];
    return logged.map(({ atMs, message }) => [atMs / 1000, message]);
  };
  if (typeof topic === 'string') return of(topic);
  const topics = plugin.run('events') as readonly (readonly [string, number])[];
  return new Map(topics.map(([name]) => [name, of(name)]));
}

function logEvent({ plugin }: DaskContext, request: Fields): null {
  const { topic, msg } = request;
  const topics = typeof topic === 'string' ? [topic] : (asList(topic) ?? []).map(String);
  plugin.enqueue({ op: 'log-event', topics, message: msg });
  return null;
}

// Deployments that follow which workers there are.

/** `subscribe_worker_status`: a snapshot, then what changes. */
export function makeWatchers(context: DaskContext): DaskExtension {
  const { plugin } = context;
  const watchers = new Set<Comm>();
  const tell = (message: unknown): void => {
    for (const comm of watchers) {
      if (comm.isClosed) watchers.delete(comm);
      else comm.send(message);
    }
  };
  // Peers know the workers of Dask only, and complain of the end of others.
  const shown = new Set(context.workers.keys());
  const onRemoved = ({ address }: { readonly address: string }): void => {
    if (shown.delete(address)) tell(['remove', address]);
  };
  const stop = plugin.observe({ workerRemoved: onRemoved });
  return {
    rpc: {
      subscribe_worker_status: (_request, _context, comm) => {
        const identity = schedulerIdentity(context);
        const workers = identity['workers'] as ReadonlyMap<string, Fields>;
        const described = new Map(
          [...workers].map(([address, worker]) => [address, brief(worker)]),
        );
        comm.write({ ...identity, workers: described });
        watchers.add(comm);
        return NO_REPLY;
      },
    },
    workerJoined: (worker) => {
      shown.add(worker.address);
      const added = new Map([[worker.address, brief(workerIdentity(context, worker))]]);
      tell(['add', { workers: added }]);
    },
    close: stop,
  };
}

function brief(identity: Fields): Fields {
  return omit(identity, 'metrics', 'last_seen');
}
