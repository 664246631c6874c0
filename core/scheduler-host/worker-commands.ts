import { type Clock, every } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { hint } from '../shared/words.ts';
import { ClusterState } from '../state/cluster.ts';
import type { WorkerState } from '../state/task.ts';
import { countOf } from '../util/values.ts';
import { builtin, type BuiltinCommand, type Given } from './commands.ts';
import { Sessions } from './sessions.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { STIMULI, type Stimuli } from './tokens.ts';
import { WorkerChannels } from './worker-channels.ts';

/** A worker that has not answered within this time is listed as silent. */
const ANSWER_TIMEOUT_MS = 10_000;
const RESTART_TIMEOUT_MS = 30_000;
/** Between two looks at who is back. */
const LOOK_MS = 50;

interface Named {
  readonly address: string;
  readonly name: string;
}

/** Commands that have workers do something: run functions, tell of themselves, start anew. */
@collaborator
export class WorkerCommands implements Asked {
  readonly commands: readonly BuiltinCommand[];

  constructor(
    readonly cluster: ClusterState,
    readonly sessions: Sessions,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly queue: StimulusQueue,
    private readonly channels: WorkerChannels,
  ) {
    this.commands = [
      builtin('broadcast', (given) => this.broadcast(given)),
      builtin('proxy', (given) => this.proxy(given)),
      builtin('call-stacks', (given) => this.callStacks(given)),
      builtin('connections', (given) => this.connections(given)),
      builtin('restart-workers', (given) => this.restartWorkers(given)),
      builtin('restart', (given) => this.restart(given)),
    ];
  }

  /** The same request to workers. */
  private broadcast({
    method,
    parameters = {},
    workers,
    timeoutMs = Infinity,
  }: Given<'broadcast'>): unknown {
    const chosen = workersNamed(this.cluster, workers);
    return askWorkers(this, chosen, { method, parameters }, timeoutMs);
  }

  /** A request to one worker: its answer, or what it throws. */
  private proxy({
    worker,
    method,
    parameters = {},
    timeoutMs = Infinity,
  }: Given<'proxy'>): unknown {
    const [found] = workersNamed(this.cluster, [worker]);
    return askWorker(this, (found as WorkerState).address, { method, parameters }, timeoutMs);
  }

  private callStacks({
    keys: wanted,
    workers,
    timeoutMs = ANSWER_TIMEOUT_MS,
  }: Given<'call-stacks'>): unknown {
    const chosen = workersNamed(this.cluster, workers).filter(({ processing }) => {
      return wanted?.some((key) => processing.has(this.cluster.tasks.get(key) as never)) ?? true;
    });
    const only = wanted === undefined ? {} : { keys: wanted };
    const request = { method: 'inspect', parameters: { what: 'call-stacks', ...only } };
    return askWorkers(this, chosen, request, timeoutMs);
  }

  private async connections({
    workers,
    timeoutMs = ANSWER_TIMEOUT_MS,
  }: Given<'connections'>): Promise<unknown> {
    const request = { method: 'inspect', parameters: { what: 'connections' } };
    const chosen = workersNamed(this.cluster, workers);
    return {
      scheduler: {
        workers: this.sessions.workers.size,
        clients: this.sessions.clients.size,
        all: this.sessions.all.size,
        toWorkers: this.channels.count,
      },
      workers: await askWorkers(this, chosen, request, timeoutMs),
    };
  }

  /** Those that have a nanny; all of these, when none is named. */
  private async restartWorkers({
    workers: names = [],
    errors = 'raise',
    wait,
    timeoutMs = RESTART_TIMEOUT_MS,
  }: Given<'restart-workers'>): Promise<unknown> {
    const { cluster } = this;
    const unknown =
      errors === 'raise' ? [] : names.filter((name) => meantBy(cluster, name).length === 0);
    const meant = names.filter((name) => !unknown.includes(name));
    const workers = names.length === 0 ? cluster.workersByRank : workersNamed(cluster, meant);
    const { restarted, kept, missing } = await this.renewAndWait(workers, wait, timeoutMs);
    if (missing.length === 0 || errors === 'return') return { restarted, kept, missing, unknown };
    throw new YardmasterError(
      'ERR_TIMEOUT',
      `${missing.length} of ${countOf(restarted.length, 'worker')} did not come back within ${timeoutMs} ms after the restart: ${missing.map(({ name }) => name).join(', ')}; wait longer (timeoutMs), and look into the logs of their nannies`,
      { timeoutMs, missing },
    );
  }

  /** Forgets all tasks of all clients, then has workers replaced and waits for the new ones. */
  private restart({ wait, timeoutMs = RESTART_TIMEOUT_MS }: Given<'restart'>): Promise<unknown> {
    this.stimuli.accept({ op: 'restart' });
    return this.renewAndWait(this.cluster.workersByRank, wait, timeoutMs);
  }

  private async renewAndWait(
    workers: readonly WorkerState[],
    wait: boolean | undefined,
    timeoutMs: number,
  ): Promise<Readonly<Record<'restarted' | 'kept' | 'missing', readonly Named[]>>> {
    const renewed = workers.filter(({ identity }) => identity.nanny !== undefined);
    const restarted = renewed.map(nameOf);
    const kept = workers.filter(({ identity }) => identity.nanny === undefined).map(nameOf);
    // Of the processes that end.
    const serverIds = new Set(renewed.map(({ identity }) => identity.serverId));
    for (const { address: worker } of restarted) {
      const how = { expected: true, close: true, restart: true };
      this.stimuli.accept({ op: 'remove-worker', worker, ...how });
    }
    if (wait === false) return { restarted, kept, missing: [] };
    const missing = (): readonly Named[] =>
      renewed.filter((each) => !isReplaced(this.cluster, each, serverIds)).map(nameOf);
    await until(this.clock, timeoutMs, () => this.queue.isStopped || missing().length === 0);
    return { restarted, kept, missing: missing() };
  }
}

function nameOf({ address, name }: WorkerState): Named {
  return { address, name };
}

/**
 * True when another process has taken the place of a worker: it has its name. A worker without one is named by its
 * address, which changes; its successor has the same nanny.
 */
function isReplaced(
  { aliases, workers, workersByRank }: ClusterState,
  { name, address, identity: { nanny, host } }: WorkerState,
  former: ReadonlySet<string>,
): boolean {
  const isNew = ({ identity }: WorkerState): boolean => !former.has(identity.serverId);
  if (name === address) {
    return workersByRank.some(
      (each) => each.identity.nanny === nanny && each.identity.host === host && isNew(each),
    );
  }
  const found = workers.get(aliases.get(name) ?? '');
  return found !== undefined && isNew(found);
}

/** Those of this address or name, or on the host of this name. */
function meantBy({ workersByRank }: ClusterState, name: string): readonly WorkerState[] {
  return workersByRank.filter(
    ({ address, name: its, identity }) =>
      name === address || name === its || name === identity.host,
  );
}

/** Resolves when it is so, or when the time is over. */
function until(clock: Clock, timeoutMs: number, isSo: () => boolean): Promise<void> {
  if (isSo()) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      looking.cancel();
      limit.cancel();
      resolve();
    };
    const looking = every(clock, LOOK_MS, () => {
      if (isSo()) end();
    });
    const limit = clock.setTimer(timeoutMs, end);
  });
}

/** The workers that are asked, and their connections. */
interface Asked {
  readonly cluster: ClusterState;
  readonly sessions: Sessions;
}

/** The answer of each worker, by address; `error` where one did not answer. */
export type Answers<T = Readonly<Record<string, unknown>>> = readonly (readonly [
  address: string,
  answer: T | { readonly error: string },
])[];

/**
 * Asks workers in parallel. A worker that does not answer in time does not delay the result: its
 * entry is the error.
 *
 * @param timeoutMs - Infinity: as long as the worker is connected
 */
export function askWorkers<T>(
  asked: Asked,
  workers: readonly WorkerState[],
  request: { readonly method: string; readonly parameters: WireMessage },
  timeoutMs: number,
): Promise<Answers<T>> {
  return Promise.all(
    workers.map(async ({ address }) => {
      try {
        return [address, await askWorker<T>(asked, address, request, timeoutMs)] as const;
      } catch (error) {
        return [address, { error: (error as Error).message }] as const;
      }
    }),
  );
}

/** @throws YardmasterError `ERR_CLOSED`, `ERR_TIMEOUT`; RemoteError what the worker threw */
async function askWorker<T>(
  asked: Asked,
  address: string,
  { method, parameters }: { readonly method: string; readonly parameters: WireMessage },
  timeoutMs: number,
): Promise<T> {
  const channel = asked.sessions.channelOf(address);
  if (channel !== undefined) return channel.request<T>(method, parameters, timeoutMs);
  throw new YardmasterError('ERR_CLOSED', `the worker ${address} is not connected`, { address });
}

/**
 * The workers with these names; all, when no name is given.
 * @param named - addresses, names or hosts
 * @throws YardmasterError `ERR_NO_WORKER` when no worker has one of the names
 */
export function workersNamed(
  cluster: ClusterState,
  named: readonly string[] | undefined,
): readonly WorkerState[] {
  const { workersByRank } = cluster;
  if (named === undefined) return workersByRank;
  const chosen = new Set<WorkerState>();
  for (const name of named) {
    const found = meantBy(cluster, name);
    for (const worker of found) chosen.add(worker);
    if (found.length > 0) continue;
    const known = workersByRank.map((worker) => worker.name);
    throw new YardmasterError(
      'ERR_NO_WORKER',
      `there is no worker "${name}"${hint(name, known)}; there are ${known.join(', ') || 'none'}`,
      { worker: name },
    );
  }
  return [...chosen];
}
