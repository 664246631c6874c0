import { type TaskView, YardmasterError } from '../../core/api/index.ts';
import { SpreadReplicas } from '../../policies/amm/spread-replicas.ts';
import { findWorkers, type MovementScope, Patience, pause } from './movement.ts';

/** Between two looks at what has arrived. */
const LOOK_MS = 20;

/** What to copy. */
interface ReplicateRequest {
  readonly keys: readonly string[];
  /** Copies of each. Default: one on every worker, also on those that come later. */
  readonly n?: number;
  /** Addresses or names of the workers to use. Default: all. */
  readonly workers?: readonly string[];
  /** Copies that each holder makes at once. Default 2. */
  readonly branchingFactor?: number;
  /** Drop copies beyond the number. Default true. */
  readonly dropSurplus?: boolean;
}

/** The outcome. Parallel arrays. */
interface ReplicateResult {
  readonly keys: readonly string[];
  /** Copies that there are now of each. */
  readonly copies: readonly number[];
  /** Keys without a result, which were not copied. */
  readonly missing: readonly string[];
}

/**
 * Makes copies of results now, and has them kept from then on.
 * @throws YardmasterError `ERR_NO_WORKER` when all of the workers are unknown, `ERR_CLOSED`
 */
export async function replicateKeys(
  scope: MovementScope,
  request: ReplicateRequest,
): Promise<ReplicateResult> {
  const { cluster } = scope;
  const { n = Infinity, branchingFactor = 2, dropSurplus = true } = request;
  const workers = addresses(scope, request.workers);
  const tasks: TaskView[] = [];
  const missing: string[] = [];
  for (const key of new Set(request.keys)) {
    const task = cluster.tasks.get(key);
    if (task?.state === 'memory' && !task.isActor) tasks.push(task);
    else missing.push(key);
  }
  const keys = tasks.map(({ key }) => key);
  const replicas = workers === undefined ? n : Math.min(n, workers.size);
  scope.enqueue({ op: 'want-replicas', keys, replicas });
  const options = { tasks, copies: n, workers, branchingFactor, dropSurplus };
  await spread(scope, new SpreadReplicas(options));
  return { keys, copies: tasks.map(({ whoHas }) => whoHas.size), missing };
}

function addresses(
  { cluster }: MovementScope,
  wanted: readonly string[] | undefined,
): ReadonlySet<string> | undefined {
  if (wanted === undefined && cluster.running.size > 0) return undefined;
  const { found, unknown } = findWorkers(cluster, wanted ?? []);
  const running = found.filter((worker) => cluster.running.has(worker));
  if (running.length > 0 && unknown.length === 0) return new Set(running.map((w) => w.address));
  const which = wanted === undefined ? 'no worker is running' : `${wanted.join(', ')}: not running`;
  throw new YardmasterError(
    'ERR_NO_WORKER',
    `the results cannot be replicated: ${unknown.length > 0 ? `there is no worker ${unknown.join(', ')}` : which}`,
    { workers: wanted ?? [], unknown },
  );
}

async function spread(scope: MovementScope, policy: SpreadReplicas): Promise<void> {
  const manager = scope.makeManager();
  const patience = new Patience(scope.clock);
  manager.policies.add(policy);
  for (;;) {
    const { accepted } = manager.runOnce();
    if (policy.open.size === 0) return;
    let copies = accepted;
    let nbytes = 0;
    for (const { whoHas, nbytes: size } of policy.open) {
      copies += whoHas.size;
      nbytes += Math.max(0, size);
    }
    // Any change is progress; the fewer open, the more arrived.
    const left = copies - 1e6 * policy.open.size;
    if (patience.isOver(left, nbytes, scope.cluster.costs.bandwidth)) return;
    await pause(scope, LOOK_MS);
  }
}
