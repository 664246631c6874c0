import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { stringify } from 'yaml';
import {
  type AmmStatus,
  type GroupView,
  type MEMORY_MEASURES,
  type PrefixView,
  type TaskFailure,
  type TaskView,
  type TransitionRecord,
  VERSION,
  type WorkerView,
} from '../../core/api/index.ts';
import { type KeyTable, reprOf } from './wire/key-table.ts';
import {
  asList,
  dialectOf,
  encodeMessage,
  entriesOf,
  type Fields,
  isFields,
  numberIn,
  omit,
  Opaque,
  PyFloat,
  textIn,
  toNumber,
} from './wire/codec.ts';
import { taskDetails } from './views.ts';
import type { DaskContext, DaskWorker, RpcTable } from './context.ts';
import { toPlain } from './wire/plain.ts';
import { broadcast, workersIn, workersMeant } from './calls.ts';
import { schedulerIdentity, workerIdentity } from './identity.ts';
import { PythonException } from './wire/py-errors.ts';
import { pushTo } from '../../core/util/collections.ts';

// The state of the scheduler in the form of Dask's cluster dumps, which `DumpArtefact` reads.

/** Names of fields that a dump is to leave out, on every level. */
function excludedBy(request: Fields): ReadonlySet<string> {
  return new Set((asList(request['exclude']) ?? []).map(String));
}

/** Plain data. O(tasks). */
async function schedulerState(
  context: DaskContext,
  excluded: ReadonlySet<string>,
): Promise<Fields> {
  const { cluster, plugin, workers, keys } = context;
  const story = (await plugin.run('story', { keys: [] })) as readonly TransitionRecord[];
  const topics = plugin.run('events') as readonly (readonly [topic: string, count: number])[];
  const parts: Record<string, () => unknown> = {
    transition_log: () => story.map((record) => transitionRow(record, keys)),
    transition_counter: () => context.tallies.transitionCount,
    tasks: () => new Map(mapped(cluster.tasks.values(), (task) => taskEntry(context, task))),
    task_groups: () =>
      new Map(mapped(cluster.groups.values(), (group) => [group.name, groupState(group)])),
    workers: () =>
      new Map(mapped(workers.values(), (worker) => [worker.address, workerState(context, worker)])),
    clients: () =>
      new Map(
        mapped(cluster.clients.values(), (client) => [
          client.key,
          {
            client_key: client.key,
            wants_what: mapped(client.wantsWhat, reprOfTask),
            last_seen: client.lastSeenMs / 1000,
          },
        ]),
      ),
    memory: () => totalMemory(cluster.workers.values()),
    events: () => new Map(topics.map(([topic]) => [topic, plugin.run('events', { topic })])),
    extensions: () => ({}),
  };
  const state: Record<string, unknown> = {
    ...schedulerIdentity(context, 0),
    status: 'running',
    thread_id: process.pid,
  };
  delete state['workers'];
  for (const [name, part] of Object.entries(parts)) {
    if (!excluded.has(name)) state[name] = part();
  }
  return toPlain(omit(state, ...excluded)) as Fields;

  function taskEntry(of: DaskContext, task: TaskView): [unknown, Fields] {
    return [of.keys.wireOf(task.key), omit(taskState(of, task), ...excluded)];
  }
}

function mapped<T, R>(items: Iterable<T>, make: (item: T) => R): R[] {
  return Array.from(items, make);
}

function taskState({ keys }: DaskContext, task: TaskView): Fields {
  const { failure } = task;
  const words: Partial<TaskFailure> = failure ?? {};
  return {
    key: keys.wireOf(task.key),
    state: task.state,
    priority: task.priority ?? null,
    run_spec: task.runSpec === undefined ? null : '<run_spec>',
    dependencies: task.dependencies.map(reprOfTask),
    dependents: task.dependents.map(reprOfTask),
    waiting_on: task.waitingOn.map(reprOfTask),
    waiters: task.waiters.map(reprOfTask),
    who_has: task.whoHas.items.map(reprOfWorker),
    who_wants: task.whoWants.items.map(({ key }) => `<Client '${key}'>`),
    processing_on: task.processingOn === undefined ? null : reprOfWorker(task.processingOn),
    nbytes: task.nbytes,
    type: task.type ?? null,
    retries: task.retries,
    suspicious: task.suspicious,
    actor: task.isActor,
    ...taskDetails(task),
    exception: failure === undefined ? null : (words.exceptionText ?? null),
    exception_text: words.exceptionText ?? '',
    traceback: words.tracebackText ?? null,
    traceback_text: words.tracebackText ?? '',
    exception_blame: task.exceptionBlame === undefined ? null : reprOfTask(task.exceptionBlame),
    group: reprOfGroup(task.group),
    group_key: task.group.name,
    prefix: reprOfPrefix(task.prefix),
  };
}

/** The attributes of Dask's `WorkerState`. */
export function workerState(context: DaskContext, worker: DaskWorker): Fields {
  const identity = workerIdentity(context, worker);
  const { registration } = worker;
  const view = context.cluster.workers.get(worker.address);
  const known = view === undefined ? {} : placeState(view);
  return {
    address: worker.address,
    name: worker.name,
    pid: registration['pid'] ?? null,
    server_id: registration['server_id'] ?? null,
    scheduler: context.address,
    nanny: worker.nanny ?? null,
    host: identity['host'],
    status: identity['status'],
    nthreads: identity['nthreads'],
    memory_limit: identity['memory_limit'],
    last_seen: identity['last_seen'],
    local_directory: identity['local_directory'],
    services: identity['services'],
    resources: identity['resources'],
    extra: registration['extra'] ?? {},
    metrics: worker.metrics,
    time_delay: 0,
    ...known,
  };
}

function placeState(view: WorkerView): Fields {
  const counts = new Map<string, number>();
  for (const { prefix } of view.processing) {
    counts.set(prefix.name, (counts.get(prefix.name) ?? 0) + 1);
  }
  return {
    nbytes: view.nbytes,
    occupancy: view.occupancyS,
    has_what: mapped(view.hasWhat, reprOfTask),
    processing: mapped(view.processing, reprOfTask),
    executing: {},
    long_running: mapped(view.longRunning, reprOfTask),
    actors: mapped(view.actors, reprOfTask),
    needs_what: view.needsWhat.size,
    used_resources: view.usedResources,
    task_prefix_count: counts,
    bandwidth: view.metrics.bandwidth ?? 0,
    memory: memoryOf(view),
  };
}

function memoryOf({ metrics }: WorkerView): Fields {
  const { memoryBytes: process, managedBytes: managed, spilledMemoryBytes: spilled } = metrics;
  return { process, managed, unmanaged: Math.max(0, process - managed), spilled };
}

function totalMemory(workers: Iterable<WorkerView>): Fields {
  const sum: Record<string, number> = { process: 0, managed: 0, unmanaged: 0, spilled: 0 };
  for (const worker of workers) {
    for (const [name, bytes] of Object.entries(memoryOf(worker))) {
      sum[name] = (sum[name] ?? 0) + Number(bytes);
    }
  }
  return sum;
}

function groupState(group: GroupView): Fields {
  return {
    name: group.name,
    prefix: reprOfPrefix(group.prefix),
    states: group.states,
    dependencies: mapped(group.dependencies, reprOfGroup),
    nbytes_total: group.nbytesTotal,
    types: [...group.types.keys()],
  };
}

function reprOfTask({ key, state }: TaskView): string {
  return `<TaskState ${reprOf(key)} ${state}>`;
}

function reprOfWorker({ address, name, status }: WorkerView): string {
  return `<WorkerState '${address}', name: ${name}, status: ${status}>`;
}

function reprOfGroup({ name, states }: GroupView): string {
  return `<${name}: ${statesText(states)}>`;
}

function reprOfPrefix({ name, states }: PrefixView): string {
  return `<${name}: ${statesText(states)}>`;
}

function statesText(states: Readonly<Record<string, number>>): string {
  return Object.entries(states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${state}: ${count}`)
    .join(' ');
}

// Looks into the scheduler and its workers, for people.

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
      workers,
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

/** The tasks that are being computed among these and their inputs, by worker. */
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
    workers,
    onError: 'ignore',
  });
  return request['merge_workers'] === false ? answers : mergeProfiles([...answers.values()]);
}

/** The contents of a dump of the cluster: the scheduler, the answer of each worker, and versions. */
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

// A dump of the whole cluster into a file of the scheduler's machine.

/** Writes it where the URL says, below the folder for that: `file://…`, or a path relative to the folder. */
export async function dumpToUrl(
  request: Fields,
  context: DaskContext,
  stateOf: (request: Fields, context: DaskContext) => Promise<Fields>,
): Promise<null> {
  const { format = 'msgpack' } = request;
  if (format !== 'msgpack' && format !== 'yaml') {
    throw new PythonException(
      'ValueError',
      `Unsupported format ${JSON.stringify(format)}. Possible values are 'msgpack' or 'yaml'.`,
    );
  }
  const suffix = format === 'yaml' ? '.yaml' : '.msgpack.gz';
  const named = pathOf(textIn(request, 'url'));
  const folder = context.options.dumpFolder ?? process.cwd();
  const path = await placeOf(named.endsWith(suffix) ? named : named + suffix, folder);
  const state = toPlain(await stateOf(request, context));
  const bytes =
    format === 'yaml'
      ? Buffer.from(stringify(state, { aliasDuplicateObjects: false }))
      : await promisify(gzip)(encodeMessage(state)[0] as Uint8Array);
  await writeDump(path, bytes);
  return null;
}

/** Replaces nothing but an earlier dump. */
async function writeDump(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    const about = await file.stat();
    const start = Buffer.alloc(about.isFile() ? DUMP_STARTS.yaml.byteLength : 0);
    const { bytesRead } = await file.read(start, 0, start.byteLength, 0);
    const isDump = Object.values(DUMP_STARTS).some((known) =>
      known.equals(start.subarray(0, Math.min(bytesRead, known.byteLength))),
    );
    if (!about.isFile() || (bytesRead > 0 && !isDump)) {
      throw new PythonException(
        'OSError',
        `${path} exists, and is no dump of a cluster: it is not replaced; choose another name`,
      );
    }
    await file.truncate(0);
    await file.write(bytes, 0, bytes.byteLength, 0);
  } finally {
    await file.close();
  }
}

/** The first bytes of dumps, by format. */
const DUMP_STARTS = { yaml: Buffer.from('scheduler:'), msgpack: Buffer.from([0x1f, 0x8b]) };

/** The path at which a dump is written. Symbolic links lead nowhere else. */
async function placeOf(named: string, folder: string): Promise<string> {
  const wanted = resolve(folder, named);
  const [parent, within] = await Promise.all([realpath(dirname(wanted)), realpath(folder)]).catch(
    (cause: unknown) => {
      throw new PythonException('OSError', (cause as Error).message);
    },
  );
  const path = join(parent, basename(wanted));
  const isLink = await lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
  const [first] = relative(within, path).split(sep);
  if (!isLink && first !== '..' && first !== '') return path;
  throw new PythonException(
    'OSError',
    `the scheduler writes dumps below ${within} only, not to ${path}; its operator can name another folder (option dumpFolder of the plugin "dask")`,
  );
}

function pathOf(url: string): string {
  if (url.includes('::')) {
    throw new PythonException(
      'ValueError',
      `dumps are not written through chained file systems (${url}): name the last one alone`,
    );
  }
  if (url.startsWith('file:///')) return fileURLToPath(url);
  return url.replace(/^(?:file|local):\/\//, '');
}

/** True when only Python's fsspec can write there: it is neither a path nor an URL of this machine's files. */
export function needsFsspec(url: unknown): boolean {
  return (
    typeof url === 'string' && !url.includes('::') && /^(?!file:|local:)[\w+.-]+:\/\//.test(url)
  );
}

/** A profile that has seen nothing. */
const EMPTY: Fields = {
  count: 0,
  children: {},
  identifier: 'root',
  description: { filename: '', name: '', line_number: 0, line: '' },
};

/** One tree of call counts out of many: counts add up, frames are matched by their identifiers. */
export function mergeProfiles(profiles: readonly unknown[]): Fields {
  const trees = profiles.filter(isFields);
  const [first] = trees;
  if (first === undefined) return EMPTY;
  const groups = new Map<unknown, unknown[]>();
  let count = 0;
  for (const tree of trees) {
    count += toNumber(tree['count']) ?? 0;
    for (const [identifier, child] of entriesOf(tree['children'])) {
      pushTo(groups, identifier, child);
    }
  }
  const children = new Map(
    [...groups].map(([identifier, same]) => [identifier, mergeProfiles(same)]),
  );
  return { ...first, count, children };
}

// Questions about tasks and workers that are answered from the tables alone.

export const TABLES: RpcTable = {
  ncores: (request, context) => threads(request, context, false),
  ncores_running: (request, context) => threads(request, context, true),
  who_has: (request, { cluster, keys, relay }) => {
    const asked = request['keys'];
    const tasks = cluster.tasks;
    const texts = asked === undefined || asked === null ? [...tasks.keys()] : keys.textsOf(asked);
    return new Map(
      texts.map((key) => [keys.wireOf(key), relay.sourcesOf(addressesOf(tasks.get(key)))]),
    );
  },
  has_what: (request, context) =>
    perWorker(request, context, (address) => {
      return keysOf(context, context.cluster.workers.get(address)?.hasWhat ?? []);
    }),
  processing: (request, context) =>
    perWorker(request, context, (address) => {
      return keysOf(context, context.cluster.workers.get(address)?.processing ?? []);
    }),
  nbytes: (request, context) => nbytes(request, context),
  get_task_status: (request, { cluster, keys }) =>
    new Map(
      (asList(request['keys']) ?? []).map((wire) => {
        return [wire, cluster.tasks.get(keys.textOf(wire))?.state ?? null];
      }),
    ),
  get_task_prefix_states: (_request, context) => prefixStates(context),
  get_story: (request, context) => story(request, context),
  get_runspec: (request, context) => runSpec(request, context),
  get_error_cause: (request, { cluster, keys }) => {
    for (const wire of asList(request['keys']) ?? []) {
      const blame = cluster.tasks.get(keys.textOf(wire))?.exceptionBlame;
      if (blame !== undefined) return keys.wireOf(blame.key);
    }
    return null;
  },
};

function addressesOf(task: TaskView | undefined): string[] {
  return (task?.whoHas.items ?? []).map(({ address }) => address);
}

function keysOf({ keys }: DaskContext, tasks: Iterable<TaskView>): unknown[] {
  return Array.from(tasks, ({ key }) => keys.wireOf(key));
}

function threads(request: Fields, context: DaskContext, onlyRunning: boolean): Map<string, number> {
  const found = new Map<string, number>();
  for (const address of addressesIn(request, context)) {
    const worker = context.cluster.workers.get(address);
    if (worker === undefined || (onlyRunning && worker.status !== 'running')) continue;
    found.set(address, worker.threadCount);
  }
  return found;
}

function perWorker<T>(
  request: Fields,
  context: DaskContext,
  read: (address: string) => T,
): Map<string, T> {
  return new Map(addressesIn(request, context).map((address) => [address, read(address)]));
}

/** The workers that a request names, by the addresses that they have; all when it names none. */
function addressesIn(request: Fields, context: DaskContext): string[] {
  const named = request['workers'];
  if (named === undefined || named === null) return [...context.workers.keys()];
  return (asList(named) ?? [named]).flatMap((which) => {
    const found = workersMeant(context, which).map(({ address }) => address);
    return found.length > 0 ? found : [String(which)];
  });
}

function nbytes(request: Fields, { cluster, keys }: DaskContext): Map<unknown, number> {
  const asked = request['keys'];
  const tasks =
    asked === undefined || asked === null
      ? [...cluster.tasks.values()].filter(({ nbytes: size }) => size >= 0)
      : keys.textsOf(asked).map((key) => {
          const task = cluster.tasks.get(key);
          if (task === undefined) throw new PythonException('KeyError', key);
          return task;
        });
  const sizes = new Map<unknown, number>();
  for (const task of tasks) {
    const name = request['summary'] === false ? keys.wireOf(task.key) : task.prefix.name;
    sizes.set(name, (sizes.get(name) ?? 0) + task.nbytes);
  }
  return sizes;
}

function prefixStates({ cluster }: DaskContext): Map<string, Fields> {
  const found = new Map<string, Fields>();
  for (const { name, states } of cluster.prefixes.values()) {
    const { memory, erred, released, processing, waiting } = states;
    if (memory + erred + released + processing + waiting === 0) continue;
    found.set(name, { memory, erred, released, processing, waiting });
  }
  return found;
}

function story(request: Fields, { plugin, keys }: DaskContext): unknown[] {
  const asked = request['keys_or_stimuli'] ?? request['keys'] ?? [];
  // Anything may be asked for; what cannot be a key has no story.
  const texts = (asList(asked) ?? [asked]).flatMap((each) => {
    try {
      return [keys.textOf(each)];
    } catch {
      return [];
    }
  });
  if (texts.length === 0) return []; // Without keys the scheduler gives all.
  const records = plugin.run('story', { keys: texts }) as readonly TransitionRecord[];
  return records.map((record) => transitionRow(record, keys));
}

/**
 * Since 2024.11.0 the task alone; before, the task (until 2023.8.0 in parts) and its inputs. What reads the
 * graphs has made the task, so the form is that of its release.
 */
function runSpec(request: Fields, { cluster, keys, graphs }: DaskContext): unknown {
  const { key } = request;
  const task = cluster.tasks.get(keys.textOf(key));
  if (task === undefined) throw new PythonException('KeyError', String(key));
  const { runSpec: spec, dependencies } = task;
  const { hasBareRunSpecs } = dialectOf(String(graphs.versions['distributed']));
  if (hasBareRunSpecs && spec instanceof Opaque && spec.kind === 'pickled') return spec;
  if (spec instanceof Opaque || isFields(spec)) {
    return { task: spec, deps: dependencies.map((dependency) => keys.wireOf(dependency.key)) };
  }
  throw new PythonException('ValueError', `${task.key} is not a task of Python`);
}

/** As Dask has it: key, start, finish, recommendations, stimulus id, seconds since 1970. */
export function transitionRow(record: TransitionRecord, keys: KeyTable): unknown[] {
  const { key, start, finish, recommendations, stimulusId, atMs } = record;
  return [
    keys.wireOf(key),
    start,
    finish,
    new Map(recommendations.map(([other, target]) => [keys.wireOf(other), target])),
    stimulusId,
    atMs / 1000,
  ];
}

// `amm_handler`: the Active Memory Manager for `client.amm` of Dask, and more of it by keyword.

type Handler = (request: Fields, context: DaskContext) => unknown;

/**
 * `start`, `stop`, `run_once` and `running` are what Dask's `AMMClientProxy` calls. The others are
 * attributes and methods of its extension that Dask does not offer to clients:
 * `client.sync(client.scheduler.amm_handler, method="add_policy", policy="ReduceReplicas")`.
 */
const METHODS: Readonly<Record<string, Handler>> = {
  start: (_request, context) => runQuietly(context, 'amm.start'),
  stop: (_request, context) => runQuietly(context, 'amm.stop'),
  run_once: (_request, context) => runQuietly(context, 'amm.runOnce'),
  running: (_request, context) => statusOf(context).running,
  interval: (_request, context) => statusOf(context).intervalMs / 1000,
  measure: (_request, context) => inSnakeCase(statusOf(context).measure),
  policies: (_request, context) => statusOf(context).policies.map(({ id }) => id),
  add_policy: async (request, { plugin }) => {
    const { options } = request;
    const given = { use: textIn(request, 'policy'), ...(isFields(options) ? { options } : {}) };
    const added = (await plugin.run('amm.addPolicy', given)) as { readonly id: string };
    return added.id;
  },
  remove_policy: (request, { plugin }) => {
    const removed = plugin.run('amm.removePolicy', { policy: textIn(request, 'policy') });
    return (removed as readonly { readonly id: string }[]).map(({ id }) => id);
  },
};

/** @throws PythonException `AttributeError` for a method that there is not */
async function handleAmm(request: Fields, context: DaskContext): Promise<unknown> {
  const name = String(request['method']);
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  if (method === undefined) {
    const known = Object.keys(METHODS).join(', ');
    throw new PythonException(
      'AttributeError',
      `the memory manager has no ${name}; there are ${known}`,
    );
  }
  return (await method(request, context)) ?? null;
}

async function runQuietly({ plugin }: DaskContext, command: string): Promise<void> {
  await plugin.run(command);
}

function statusOf({ plugin }: DaskContext): AmmStatus {
  return plugin.run('amm.status') as AmmStatus;
}

function inSnakeCase(measure: (typeof MEMORY_MEASURES)[number]): string {
  return measure.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
