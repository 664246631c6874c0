import {
  COPIES,
  COUNT,
  FLAG,
  NAME,
  NO_PARAMETERS,
  OBJECT,
  parameters,
  type ParametersOf,
  TEXT,
  TEXTS,
  TIMEOUT,
} from '../../api/command-parameters.ts';
import type { Caller, CommandHandler } from '../../api/plugin.ts';
import { LOG_LEVELS } from '../../host/log-selection.ts';
import { TASK_STATE_NAMES } from '../../state/task-state-name.ts';

const ASK = { workers: TEXTS, timeoutMs: TIMEOUT } as const;
const FINITE_TIMEOUT = { ...TIMEOUT, maximum: Number.MAX_VALUE } as const;
const LOOK = parameters({}, { timeoutMs: FINITE_TIMEOUT });
const KEYS = parameters({ keys: TEXTS });
const SOME_KEYS = parameters({}, { keys: TEXTS });
const SLOT = parameters({ slot: TEXT });
const POLICY = parameters({ slot: TEXT, use: TEXT }, { options: OBJECT });
const PLUGIN = parameters({ name: NAME, use: NAME }, { options: OBJECT, idempotent: FLAG });
const PLUGIN_NAME = parameters({ name: TEXT });
/** What may be asked of workers by way of the scheduler. */
const REQUEST = {
  method: { type: 'string', enum: ['actor-call', 'inspect', 'run'] },
} as const;

/** The parameters of every built-in command of the scheduler. */
export const BUILTIN_PARAMETERS = {
  identity: NO_PARAMETERS,
  story: SOME_KEYS,
  processing: NO_PARAMETERS,
  'has-what': NO_PARAMETERS,
  nbytes: SOME_KEYS,
  tasks: SOME_KEYS,
  'task-counts': parameters({}, { withPast: FLAG }),
  'list-tasks': parameters(
    {},
    {
      state: { type: 'string', enum: TASK_STATE_NAMES },
      prefix: TEXT,
      limit: { type: 'integer', minimum: 1, maximum: 10_000 },
    },
  ),
  executing: parameters({}, { workers: TEXTS }),
  'idle-since': NO_PARAMETERS,
  plugins: NO_PARAMETERS,
  commands: NO_PARAMETERS,
  events: parameters({}, { topic: TEXT }),
  'cancel-timeout': NO_PARAMETERS,
  'claim-keys': KEYS,
  'unclaim-keys': KEYS,
  'reserve-data': parameters(
    { keys: TEXTS, fingerprints: TEXTS },
    { nbytes: { type: 'array', items: COUNT } },
  ),
  'release-data': KEYS,
  policies: NO_PARAMETERS,
  'replace-policy': POLICY,
  'restore-policy': SLOT,
  'promote-shadow': SLOT,
  'start-shadow': POLICY,
  shadow: SLOT,
  'stop-shadow': SLOT,
  // Each has its candidates: some hundred bytes to a few kilobytes.
  'record-decisions': parameters({ keep: { type: 'integer', minimum: 0, maximum: 100_000 } }),
  why: parameters({ key: TEXT }),
  'start-recording': parameters({}, { name: TEXT }),
  'stop-recording': NO_PARAMETERS,
  recording: NO_PARAMETERS,
  'register-worker-plugin': PLUGIN,
  'unregister-worker-plugin': PLUGIN_NAME,
  'worker-plugins': NO_PARAMETERS,
  'register-nanny-plugin': PLUGIN,
  'unregister-nanny-plugin': PLUGIN_NAME,
  'nanny-plugins': NO_PARAMETERS,
  versions: LOOK,
  'dump-state': LOOK,
  logs: parameters(
    {},
    {
      workers: TEXTS,
      timeoutMs: FINITE_TIMEOUT,
      count: COPIES,
      sinceMs: { type: 'number', minimum: -Number.MAX_VALUE },
      level: { type: 'string', enum: LOG_LEVELS },
      newestFirst: FLAG,
    },
  ),
  broadcast: parameters(REQUEST, { ...ASK, parameters: OBJECT }),
  proxy: parameters({ ...REQUEST, worker: TEXT }, { timeoutMs: TIMEOUT, parameters: OBJECT }),
  'call-stacks': parameters({}, { ...ASK, keys: TEXTS }),
  connections: parameters({}, ASK),
  'restart-workers': parameters(
    {},
    { ...ASK, errors: { type: 'string', enum: ['raise', 'return'] }, wait: FLAG },
  ),
  restart: parameters({}, { wait: FLAG, timeoutMs: TIMEOUT }),
} as const;

/** Names of the built-in commands. */
export type BuiltinName = keyof typeof BUILTIN_PARAMETERS;

/** The checked parameters of a built-in command. */
export type Given<Name extends BuiltinName> = ParametersOf<(typeof BUILTIN_PARAMETERS)[Name]>;

/** The name of a built-in command with its handler, which receives checked parameters. */
export type BuiltinCommand = readonly [name: BuiltinName, handler: CommandHandler];

/** Ties a handler to the declared parameters of its command. */
export function builtin<Name extends BuiltinName>(
  name: Name,
  handler: (given: Given<Name>, caller: Caller) => unknown,
): BuiltinCommand {
  return [name, handler as CommandHandler];
}
