/** `feed`: what `progress(futures)` of Dask's clients shows while tasks run. */
import type { TaskView } from '../../../../core/api/index.ts';
import type { Companion } from '../../companion/index.ts';
import type { Comm } from '../../connection/comm.ts';
import type { DaskContext, DaskExtension, Fields } from '../../context.ts';
import { durationMs } from '../../graph/unpacked.ts';
import { NO_REPLY } from '../../connection/no-reply.ts';
import { failureForClient } from '../py-failure.ts';
import { requireClient } from '../known-peers.ts';
import { pauseMs } from '../workers/calls.ts';
import { Progress } from '../tasks/progress.ts';

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
      comm.write(await python.ask('feed.look', { feed }, 'a feed'));
      await pauseMs(context, intervalIn(request));
    }
  } finally {
    await python.ask('feed.end', { feed }, 'a feed');
  }
}

/** What the progress bars of Dask ask for; undefined when it is another feed. */
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
