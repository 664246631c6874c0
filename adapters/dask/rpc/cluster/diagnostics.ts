/** Looks into the scheduler and its workers, for people. */
import { VERSION } from '../../../../core/api/index.ts';
import { PyFloat } from '../../codec/index.ts';
import type { DaskContext, Fields, RpcTable } from '../../context.ts';
import { PythonException } from '../py-errors.ts';
import { asList, entriesOf, numberIn } from '../../codec/values.ts';
import { handleAmm } from '../amm.ts';
import { broadcast, workersIn } from '../workers/calls.ts';
import { excludedBy, schedulerState } from './cluster-state.ts';
import { mergeProfiles } from './profile.ts';

export const DIAGNOSTICS: RpcTable = {
  versions: (_request, context) => versionsOf(context),
  get_logs: (request, context) => logs(request, context),
  logs: (request, context) => logs(request, context),
  call_stack: (request, context) => callStack(request, context),
  profile: (request, context) => profile(request, context),
  profile_metadata: (request, context) => {
    const workers = workersIn(context, request['workers']);
    return broadcast(context, {
      msg: { op: 'profile_metadata', start: request['start'] ?? 0, stop: request['stop'] ?? null },
      ...(workers === undefined ? {} : { workers }),
      onError: 'ignore',
    });
  },
  get_cluster_state: (request, context) => clusterState(request, context),
  dump_state: (request, context) => schedulerState(context, excludedBy(request)),
  amm_handler: (request, context) => handleAmm(request, context),
};

/**
 * Of this process, and of the Python that reads graphs for it: what clients compare with their own.
 * Without such a Python there are no packages.
 */
async function versionsOf({ graphs, log }: DaskContext): Promise<Fields> {
  const host = { yardmaster: VERSION, node: process.version };
  try {
    return { host, packages: await graphs.packages() };
  } catch (err) {
    log.warn({ err }, 'the versions of the packages of Python are not known');
    return { host, packages: graphs.versions };
  }
}

interface Line {
  readonly atMs: number;
  readonly level: string;
  readonly message: string;
}

const LEVELS: Readonly<Record<string, string>> = { info: 'INFO', warn: 'WARNING', error: 'ERROR' };

/** The newest first. @param request - `start` in seconds since 1970, `n` lines at most, `timestamps` */
export async function logs(request: Fields, { plugin }: DaskContext): Promise<unknown[]> {
  const count = numberIn(request, 'n') ?? 0;
  const startMs = 1000 * (numberIn(request, 'start') ?? 0);
  const { scheduler } = (await plugin.run('logs')) as { scheduler: readonly Line[] };
  const lines = scheduler.filter(({ atMs }) => atMs >= startMs).toReversed();
  return (count > 0 ? lines.slice(0, count) : lines).map(({ level, message, atMs }) => {
    const line = [LEVELS[level] ?? level.toUpperCase(), message];
    return request['timestamps'] === true ? [new PyFloat(atMs / 1000), ...line] : line;
  });
}

async function callStack(request: Fields, context: DaskContext): Promise<Map<string, unknown>> {
  const asked = asList(request['keys']);
  const byWorker = new Map<string, string[] | undefined>();
  if (asked === undefined)
    for (const address of context.workers.keys()) byWorker.set(address, undefined);
  else for (const [address, keys] of processingFor(context, asked)) byWorker.set(address, keys);
  const answers = await Promise.all(
    [...byWorker].map(async ([address, keys]) => {
      const wires = keys === undefined ? null : context.keys.wiresOf(keys);
      return [address, await context.pool.call(address, 'call_stack', { keys: wires })] as const;
    }),
  );
  return new Map(answers.filter(([, stacks]) => entriesOf(stacks).length > 0));
}

/** What is being computed of these tasks and of what they wait for, by worker. */
function processingFor(
  { cluster, keys }: DaskContext,
  asked: readonly unknown[],
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const stack = keys.textsOf(asked);
  const seen = new Set(stack);
  for (let key = stack.pop(); key !== undefined; key = stack.pop()) {
    const task = cluster.tasks.get(key);
    if (task === undefined) throw new PythonException('KeyError', key);
    const address = task.processingOn?.address;
    if (task.state === 'processing' && address !== undefined) {
      found.set(address, [...(found.get(address) ?? []), key]);
    }
    if (task.state !== 'waiting') continue;
    for (const { key: input } of task.dependencies) {
      if (!seen.has(input)) stack.push(input);
      seen.add(input);
    }
  }
  return found;
}

/** Merged from the workers that are asked, unless `merge_workers` is false. */
export async function profile(request: Fields, context: DaskContext): Promise<unknown> {
  if (request['scheduler'] === true) return mergeProfiles([]);
  const workers = workersIn(context, request['workers']);
  const { start = null, stop = null, key = null, server = false } = request;
  const answers = await broadcast(context, {
    msg: { op: 'profile', start, stop, key, server },
    ...(workers === undefined ? {} : { workers }),
    onError: 'ignore',
  });
  return request['merge_workers'] === false ? answers : mergeProfiles([...answers.values()]);
}

/** What a dump of the cluster holds: the scheduler, what each worker tells, and versions. */
export async function clusterState(request: Fields, context: DaskContext): Promise<Fields> {
  const exclude = request['exclude'] ?? [];
  const [workers, versions, scheduler] = await Promise.all([
    broadcast(context, { msg: { op: 'dump_state', exclude }, onError: 'return' }),
    broadcast(context, { msg: { op: 'versions' }, onError: 'ignore' }),
    versionsOf(context),
  ]);
  return {
    scheduler: await schedulerState(context, excludedBy(request)),
    workers,
    versions: { scheduler, workers: versions },
  };
}
