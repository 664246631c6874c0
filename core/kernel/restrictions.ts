import type { ClusterState } from '../state/cluster.ts';
import type { Restrictions, TaskState, WorkerState } from '../state/task.ts';

// Where a task may run at all. Source: Dask's `valid_workers`.

/**
 * Running workers that satisfy the task's restrictions and that no rule refuses, in no order that matters, or undefined
 * when any worker does. Resources are compared with what a worker offers in all, not with what is free: the task waits
 * there. O(workers that satisfy the restrictions), times the rules that filter them.
 */
export function validWorkers(
  cluster: ClusterState,
  task: TaskState,
): ReadonlySet<WorkerState> | undefined {
  const { rules, running } = cluster;
  if (rules?.isFiltered(task) !== true) return suitableWorkers(cluster, task);
  const allowed = (workers: Iterable<WorkerState>): ReadonlySet<WorkerState> =>
    new Set([...workers].filter((worker) => rules.allows(task, worker)));
  let valid = allowed(satisfying(cluster, task) ?? running);
  if (valid.size === 0 && hasPreferences(cluster, task)) valid = allowed(running);
  return task.usedWorkers === undefined ? valid : (unusedOf(valid, task.usedWorkers) ?? valid);
}

/** As {@link validWorkers}, without regard to rules. */
export function suitableWorkers(
  cluster: ClusterState,
  task: TaskState,
): ReadonlySet<WorkerState> | undefined {
  const { usedWorkers } = task;
  const valid = satisfying(cluster, task);
  if (usedWorkers === undefined) return valid;
  return unusedOf(valid ?? cluster.running, usedWorkers) ?? valid;
}

/** True when any worker will do when none is valid. */
export function isLoose(cluster: ClusterState, task: TaskState): boolean {
  return hasPreferences(cluster, task) && cluster.rules?.isFiltered(task) !== true;
}

function hasPreferences(cluster: ClusterState, task: TaskState): boolean {
  return task.restrictions?.loose === true && cluster.languageFor(task) === undefined;
}

/** True when any running worker satisfies the restrictions and the rules. */
export function isSuited(cluster: ClusterState, task: TaskState): boolean {
  if (cluster.running.size === 0) return false;
  const valid = validWorkers(cluster, task);
  return valid === undefined || valid.size > 0 || isLoose(cluster, task);
}

/** From now on the task goes to other workers, as long as there are any. */
export function avoidWorker(task: TaskState, { name, address }: WorkerState): void {
  task.usedWorkers = new Set([...(task.usedWorkers ?? []), name, address]);
}

/** True when the task may run on a worker that it does not avoid. O(workers). */
export function hasUntriedWorker(cluster: ClusterState, task: TaskState): boolean {
  const { usedWorkers } = task;
  for (const { name, address } of validWorkers(cluster, task) ?? cluster.running) {
    if (usedWorkers?.has(name) !== true && usedWorkers?.has(address) !== true) return true;
  }
  return false;
}

/** Of those that speak the language of the task the ones that satisfy the rest, or all if the rest is a preference. */
function satisfying(cluster: ClusterState, task: TaskState): ReadonlySet<WorkerState> | undefined {
  const { restrictions } = task;
  const language = cluster.languageFor(task);
  const named = restrictions && runningAt(cluster, restrictions);
  if (language === undefined) return named;
  const speakers = [...cluster.running].filter((worker) => worker.language === language);
  const valid = new Set(speakers.filter((worker) => named?.has(worker) !== false));
  return valid.size === 0 && restrictions?.loose === true ? new Set(speakers) : valid;
}

/** The part of them that the task does not avoid; undefined: it is none, or all. */
function unusedOf(
  workers: Iterable<WorkerState>,
  used: ReadonlySet<string>,
): ReadonlySet<WorkerState> | undefined {
  const pool = [...workers];
  const unused = pool.filter(({ name, address }) => !used.has(name) && !used.has(address));
  return unused.length === 0 || unused.length === pool.length ? undefined : new Set(unused);
}

function runningAt(
  cluster: ClusterState,
  restrictions: Restrictions,
): ReadonlySet<WorkerState> | undefined {
  const addresses = validAddresses(cluster, restrictions);
  if (addresses === undefined) return undefined;
  const valid = new Set<WorkerState>();
  for (const address of addresses) {
    const worker = cluster.workers.get(address);
    if (worker?.status === 'running') valid.add(worker);
  }
  return valid;
}

function validAddresses(
  cluster: ClusterState,
  { workers, names, hosts, resources }: Restrictions,
): ReadonlySet<string> | undefined {
  let addresses: Set<string> | undefined;
  if (workers !== undefined && workers.size > 0) {
    addresses = new Set([...workers].filter((address) => cluster.workers.has(address)));
  }
  if (names !== undefined && names.size > 0) {
    addresses ??= new Set();
    for (const name of names) {
      const address = cluster.aliases.get(name);
      if (address !== undefined) addresses.add(address);
      else for (const one of addressesOf(cluster, name)) addresses.add(one);
    }
  }
  if (hosts !== undefined && hosts.size > 0) {
    addresses ??= new Set();
    for (const host of hosts) {
      for (const address of addressesOf(cluster, host)) addresses.add(address);
    }
  }
  for (const [resource, amount] of resources ?? []) {
    const supply = cluster.resources.get(resource);
    const suppliers = new Set<string>();
    for (const [address, offered] of supply ?? []) {
      if (offered >= amount && (addresses?.has(address) ?? true)) suppliers.add(address);
    }
    addresses = suppliers;
  }
  return addresses;
}

/** A host restriction names a host or a worker, and then means that worker's host. */
function addressesOf(cluster: ClusterState, host: string): Iterable<string> {
  const alias = cluster.aliases.get(host);
  const worker = alias === undefined ? undefined : cluster.workers.get(alias);
  return cluster.hosts.get(worker?.host ?? host) ?? [];
}

/**
 * The restrictions of a task, one by one, and the workers that match each; empty when any worker
 * will do.
 */
export function describeRestrictions(cluster: ClusterState, task: TaskState): string {
  const { workers, names, hosts, resources } = task.restrictions ?? {};
  const demands: string[] = [];
  const language = cluster.languageFor(task);
  if (language !== undefined) demands.push(`a worker whose language is ${language}`);
  if (workers !== undefined) demands.push(`worker ${list(workers)}`);
  if (names !== undefined) demands.push(`worker or host ${list(names)}`);
  if (hosts !== undefined) demands.push(`host or worker name ${list(hosts)}`);
  for (const [resource, amount] of resources ?? []) {
    const offers = [...(cluster.resources.get(resource)?.values() ?? [])];
    const largest = offers.reduce((most, offer) => Math.max(most, offer), -Infinity);
    const most = offers.length === 0 ? 'no worker offers any' : `at most ${largest} on one`;
    demands.push(`${amount} ${resource} (${most})`);
  }
  return demands.join(', ');
}

function list(names: ReadonlySet<string>): string {
  return [...names].join(' or ');
}
