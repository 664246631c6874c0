import { YardmasterError } from '../api/errors.ts';
import type { PeerRole } from '../api/transport.ts';
import type { Role } from '../messages/protocol.ts';
import type { BuiltinName } from './commands.ts';

/** What each kind of key may introduce itself as. */
const MAY_BE: Readonly<Record<PeerRole, readonly Role[]>> = {
  worker: ['worker'],
  client: ['client'],
  admin: ['client'],
  viewer: ['client'],
  data: [],
};

/** Commands that only look. */
const LOOKING: ReadonlySet<string> = new Set<BuiltinName>([
  'identity',
  'story',
  'processing',
  'has-what',
  'nbytes',
  'tasks',
  'task-counts',
  'list-tasks',
  'executing',
  'idle-since',
  'plugins',
  'commands',
  'events',
  'cancel-timeout',
  'policies',
  'shadow',
  'why',
  'worker-plugins',
  'nanny-plugins',
  'versions',
  'logs',
  'connections',
]);

/** Commands that change or stop the cluster for all of its clients. */
const OPERATING: ReadonlySet<string> = new Set<BuiltinName>([
  'replace-policy',
  'restore-policy',
  'promote-shadow',
  'start-shadow',
  'stop-shadow',
  'register-worker-plugin',
  'unregister-worker-plugin',
  'register-nanny-plugin',
  'unregister-nanny-plugin',
  'dump-state',
  'start-recording',
  'stop-recording',
  'restart-workers',
  'restart',
]);

/** Plugins whose commands act on the cluster as a whole, and show secrets of those who operate it. */
const OPERATING_PLUGINS = ['amm', 'dashboard', 'dask', 'work-stealing'];

/** Commands of these plugins that say nothing which is not for all clients. */
const OPEN_COMMANDS: ReadonlySet<string> = new Set(['dask.address', 'dask.identity']);

/** Messages that a viewer may send. */
const OF_VIEWER = ['heartbeat-client', 'close-client'];

/** Requests that a viewer may make besides commands. */
const ASKED_BY_VIEWER = ['hello', 'register-client', 'who-has'];

/** Requests that a worker may make besides the command by which it retires. */
const ASKED_BY_WORKER = ['hello', 'register-worker'];

/**
 * @param key - undefined: the connection is within the process, or not authenticated
 * @throws YardmasterError `ERR_ACCESS`
 */
export function checkHello(key: PeerRole | undefined, role: Role): void {
  if (key === undefined || MAY_BE[key].includes(role)) return;
  throw forbidden(key, `be a ${role}`);
}

/** @throws YardmasterError `ERR_ACCESS` */
export function checkReport(key: PeerRole | undefined, op: string): void {
  if (key === 'viewer' && !OF_VIEWER.includes(op)) throw forbidden(key, `send "${op}"`);
}

/**
 * @param sender - address of the worker or key of the client that asks
 * @throws YardmasterError `ERR_ACCESS`
 */
export function checkQuestion(
  key: PeerRole | undefined,
  method: string,
  parameters: { readonly command?: unknown; readonly parameters?: unknown },
  sender: string | undefined,
): void {
  if (key === undefined || key === 'admin') return;
  if (method !== 'command') {
    const isAsked = key === 'viewer' ? ASKED_BY_VIEWER : ASKED_BY_WORKER;
    if (key !== 'client' && !isAsked.includes(method)) throw forbidden(key, method);
    return;
  }
  const command = String(parameters.command);
  if (!mayCommand(key, command, parameters, sender)) {
    throw forbidden(key, `run the command "${command.slice(0, 60)}"`);
  }
}

function mayCommand(
  key: PeerRole,
  command: string,
  parameters: { readonly parameters?: unknown },
  sender: string | undefined,
): boolean {
  if (key === 'worker') return command === 'amm.retireWorkers' && isAlone(parameters, sender);
  if (key === 'viewer') return LOOKING.has(command);
  const [plugin = ''] = command.split('.', 1);
  if (OPEN_COMMANDS.has(command)) return true;
  return !OPERATING.has(command) && !OPERATING_PLUGINS.includes(plugin);
}

/** Whether a worker asks for itself: before it closes, what only it holds moves to others. */
function isAlone(
  { parameters }: { readonly parameters?: unknown },
  sender: string | undefined,
): boolean {
  const { workers } = (parameters ?? {}) as { readonly workers?: unknown };
  return Array.isArray(workers) && workers.length === 1 && workers[0] === sender;
}

function forbidden(key: PeerRole, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_ACCESS',
    `the key of a ${key} does not permit to ${what}; use the access file of another role`,
    { role: key },
  );
}
