import { type Clock, every } from '../../api/clock.ts';
import { YardmasterError } from '../../api/errors.ts';
import type { NewStimulus } from '../../api/plugin.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { WorkerState } from '../../state/task.ts';
import { type Asked, askWorker, askWorkers, workersNamed } from './ask-workers.ts';
import { builtin, type BuiltinCommand, type Given } from './builtin-parameters.ts';

/** A worker that has not answered within this time is listed as silent. */
const ANSWER_TIMEOUT_MS = 10_000;
const RESTART_TIMEOUT_MS = 30_000;
/** Between two looks at who is back. */
const LOOK_MS = 50;

/** What the commands work on. */
export interface WorkerCommandScope extends Asked {
  readonly clock: Clock;
  enqueue(stimulus: NewStimulus): void;
  /** The scheduler closes, and nothing happens any more. */
  isStopped(): boolean;
  /** Connections of the scheduler, by kind. */
  connections(): Readonly<Record<string, number>>;
}

interface Named {
  readonly address: string;
  readonly name: string;
}

/** Commands for workers: run functions, describe themselves, restart. */
export class WorkerCommands {
  readonly commands: readonly BuiltinCommand[];

  constructor(private readonly scope: WorkerCommandScope) {
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
    const { scope } = this;
    const chosen = workersNamed(scope.cluster, workers);
    return askWorkers(scope, chosen, { method, parameters }, timeoutMs);
  }

  /** A request to one worker: its answer, or what it throws. */
  private proxy({
    worker,
    method,
    parameters = {},
    timeoutMs = Infinity,
  }: Given<'proxy'>): unknown {
    const { scope } = this;
    const [found] = workersNamed(scope.cluster, [worker]);
    return askWorker(scope, (found as WorkerState).address, { method, parameters }, timeoutMs);
  }

  private callStacks({
    keys: wanted,
    workers,
    timeoutMs = ANSWER_TIMEOUT_MS,
  }: Given<'call-stacks'>): unknown {
    const { scope } = this;
    const chosen = workersNamed(scope.cluster, workers).filter(({ processing }) => {
      return wanted?.some((key) => processing.has(scope.cluster.tasks.get(key) as never)) ?? true;
    });
    const only = wanted === undefined ? {} : { keys: wanted };
    const request = { method: 'inspect', parameters: { what: 'call-stacks', ...only } };
    return askWorkers(scope, chosen, request, timeoutMs);
  }

  private async connections({
    workers,
    timeoutMs = ANSWER_TIMEOUT_MS,
  }: Given<'connections'>): Promise<unknown> {
    const { scope } = this;
    const request = { method: 'inspect', parameters: { what: 'connections' } };
    const chosen = workersNamed(scope.cluster, workers);
    return {
      scheduler: scope.connections(),
      workers: await askWorkers(scope, chosen, request, timeoutMs),
    };
  }

  /** Those that have a nanny; all of these, when none is named. */
  private async restartWorkers({
    workers: names = [],
    errors = 'raise',
    wait,
    timeoutMs = RESTART_TIMEOUT_MS,
  }: Given<'restart-workers'>): Promise<unknown> {
    const { cluster } = this.scope;
    const unknown = errors === 'raise' ? [] : names.filter((name) => !isKnown(cluster, name));
    const meant = names.filter((name) => !unknown.includes(name));
    const workers = names.length === 0 ? cluster.workersByRank : workersNamed(cluster, meant);
    const { restarted, kept, missing } = await this.renewAndWait(workers, wait, timeoutMs);
    if (missing.length === 0 || errors === 'return') return { restarted, kept, missing, unknown };
    throw new YardmasterError(
      'ERR_TIMEOUT',
      `${missing.length} of ${restarted.length} workers were not back ${timeoutMs} ms after their restart: ${missing.map(({ name }) => name).join(', ')}; wait longer (timeoutMs), and look into the logs of their nannies`,
      { timeoutMs, missing },
    );
  }

  /** Forgets all tasks of all clients, then has workers replaced and waits for the new ones. */
  private restart({ wait, timeoutMs = RESTART_TIMEOUT_MS }: Given<'restart'>): Promise<unknown> {
    const { scope } = this;
    scope.enqueue({ op: 'restart' });
    return this.renewAndWait(scope.cluster.workersByRank, wait, timeoutMs);
  }

  private async renewAndWait(
    workers: readonly WorkerState[],
    wait: boolean | undefined,
    timeoutMs: number,
  ): Promise<Readonly<Record<'restarted' | 'kept' | 'missing', readonly Named[]>>> {
    const { scope } = this;
    const { restarted, kept, serverIds } = this.renew(workers);
    if (wait === false) return { restarted, kept, missing: [] };
    const missing = (): readonly Named[] =>
      restarted.filter(({ name }) => {
        const address = scope.cluster.aliases.get(name);
        const worker = address === undefined ? undefined : scope.cluster.workers.get(address);
        return worker === undefined || serverIds.has(worker.identity.serverId);
      });
    await until(scope.clock, timeoutMs, () => scope.isStopped() || missing().length === 0);
    return { restarted, kept, missing: missing() };
  }

  private renew(workers: readonly WorkerState[]): {
    readonly restarted: readonly Named[];
    readonly kept: readonly Named[];
    /** Of the processes that end. */
    readonly serverIds: ReadonlySet<string>;
  } {
    const name = ({ address, name: its }: WorkerState): Named => ({ address, name: its });
    const renewed = workers.filter(({ identity }) => identity.nanny !== undefined);
    const kept = workers.filter(({ identity }) => identity.nanny === undefined).map(name);
    const restarted = renewed.map(name);
    const serverIds = new Set(renewed.map(({ identity }) => identity.serverId));
    for (const { address: worker } of restarted) {
      const how = { expected: true, close: true, restart: true };
      this.scope.enqueue({ op: 'remove-worker', worker, ...how });
    }
    return { restarted, kept, serverIds };
  }
}

function isKnown({ workersByRank }: ClusterState, name: string): boolean {
  return workersByRank.some(
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
