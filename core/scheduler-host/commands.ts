import { YardmasterError } from '../api/errors.ts';
import {
  type Caller,
  type CommandHandler,
  COPIES,
  COUNT,
  FLAG,
  NAME,
  NO_PARAMETERS,
  OBJECT,
  parameters,
  type ParametersOf,
  type ParametersSchema,
  TEXT,
  TEXTS,
  TIMEOUT,
  token,
  type Token,
} from '../api/plugin.ts';
import { pathText, problemsOf } from '../config/check.ts';
import { PendingAnswers } from '../host/answers.ts';
import { LOG_LEVELS } from '../host/log.ts';
import { inject } from '../plugin-host/injection.ts';
import { hint, show } from '../shared/words.ts';
import { TASK_STATE_NAMES } from '../state/state-names.ts';
import { isPlainObject, isPromise } from '../util/values.ts';
import { RECORDER, type SchedulerRecorder } from './journal.ts';
import { type LoadedPlugin, PLUGINS, type PluginTable } from './plugin-table.ts';
import { SHUTDOWN, type Shutdown } from './shutdown.ts';

export const COMMANDS: Token<Commands> = token('commands');

/** What answers commands. */
export interface CommandSource {
  readonly commands: Iterable<readonly [name: string, handler: CommandHandler]>;
}

/**
 * Calls that clients make by name: the built-in ones, and `<plugin>.<command>`. Answers are plain
 * data; keys and addresses come as pairs and never as names of fields.
 */
export class Commands {
  private readonly builtin = new Map<string, CommandHandler>([['commands', () => this.names()]]);
  /** Of the built-in commands; plugins have their own. */
  private readonly answers = new PendingAnswers();

  constructor(
    @inject(PLUGINS) private readonly plugins: PluginTable,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
  ) {}

  /** Adds built-in commands. */
  add({ commands }: CommandSource): void {
    for (const [name, handler] of commands) this.builtin.set(name, handler);
  }

  /**
   * A promise that this returns settles at the latest when the plugin of the command, or the scheduler, is
   * gone: with `ERR_CLOSED`.
   * @throws YardmasterError `ERR_CLOSED`; `ERR_PROTOCOL` when there is no such command, or for wrong parameters;
   * what the command throws; of a command of a plugin `ERR_PLUGIN_HOOK` for errors without a class or code of their own
   */
  run(name: string, parameters: unknown, caller: Caller): unknown {
    this.shutdown.checkOpen();
    const builtinHandler = this.builtin.get(name);
    const plugin = builtinHandler === undefined ? this.pluginOf(name) : undefined;
    const ofPlugin = plugin?.commands.get(name.slice(name.indexOf('.') + 1));
    const handler = builtinHandler ?? ofPlugin?.handler;
    if (handler !== undefined) {
      const schema =
        ofPlugin === undefined ? BUILTIN_PARAMETERS[name as BuiltinName] : ofPlugin.parameters;
      const given = schema === undefined ? parameters : checkParameters(name, schema, parameters);
      if (plugin === undefined) {
        const answer: unknown = handler(given, caller);
        return isPromise(answer) ? this.answers.add(answer) : answer;
      }
      return runOf(plugin, name, () => handler(given, caller));
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `there is no command ${show(name)}${suggestion(name, this.names())}`,
      { command: name.slice(0, 100) },
    );
  }

  /** The scheduler is closed: calls without an answer fail. */
  close(error: Error): void {
    this.answers.failAll(error);
  }

  private names(): string[] {
    const ofPlugins = this.plugins.all.flatMap((plugin) =>
      [...plugin.commands.keys()].map((command) => `${plugin.name}.${command}`),
    );
    return [...this.builtin.keys(), ...ofPlugins];
  }

  private pluginOf(name: string): LoadedPlugin | undefined {
    const dot = name.indexOf('.');
    return dot < 0 ? undefined : this.plugins.get(name.slice(0, dot));
  }
}

/** The nearest name, or the commands of the same plugin, or where to find all. */
function suggestion(name: string, known: readonly string[]): string {
  const near = hint(name, known);
  if (near !== '') return near;
  const dot = name.indexOf('.');
  const ofPlugin = known.filter((one) => dot > 0 && one.startsWith(name.slice(0, dot + 1)));
  if (ofPlugin.length > 0) return `; that plugin has ${ofPlugin.join(', ')}`;
  return '; the command "commands" lists all';
}

/** Runs a command of a plugin; it is named when it throws, and when it takes long. */
function runOf(plugin: LoadedPlugin, name: string, call: () => unknown): unknown {
  const subject = `the command "${name}" of ${plugin.owner}`;
  const named = (cause: unknown): never => {
    throw namedFailure(subject, { plugin: plugin.name, command: name }, cause);
  };
  try {
    const answer = plugin.run(subject, call);
    return isPromise(answer) ? plugin.answers.add(answer.then(undefined, named)) : answer;
  } catch (cause) {
    return named(cause);
  }
}

/** Errors of JavaScript itself. Others were thrown on purpose, with a class or a code that callers know. */
const PLAIN_ERRORS = ['Error', 'TypeError', 'RangeError', 'ReferenceError', 'SyntaxError'];

function namedFailure(
  subject: string,
  data: Readonly<Record<string, string>>,
  cause: unknown,
): unknown {
  const isError = cause instanceof Error;
  if (isError && ('code' in cause || !PLAIN_ERRORS.includes(cause.constructor.name))) return cause;
  const message = isError ? cause.message : String(cause);
  return new YardmasterError('ERR_PLUGIN_HOOK', `${subject} threw: ${message}`, data, { cause });
}

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

/**
 * The parameters of a call, checked: without those that are null or undefined, and with defaults.
 * @throws YardmasterError `ERR_PROTOCOL` naming the command and the parameter
 */
export function checkParameters(
  command: string,
  schema: ParametersSchema,
  parameters: unknown,
): Readonly<Record<string, unknown>> {
  const given = parameters ?? {};
  if (!isPlainObject(given)) {
    throw refusal(command, `takes its parameters as an object, got ${show(given)}`);
  }
  const present = Object.entries(given).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  const checked = Object.fromEntries(present);
  const problems = problemsOf(schema, checked);
  // A misspelt name is named before the parameter that is missing because of it.
  const problem = problems.find(({ aboutKey }) => aboutKey === true) ?? problems[0];
  if (problem === undefined) return checked;
  const { at, message, aboutKey } = problem;
  const field = String(at[0]);
  const known = Object.keys(schema.properties);
  const there = known.length === 0 ? 'it has none' : `there are ${known.join(', ')}`;
  throw aboutKey === true
    ? refusal(command, `has no parameter "${field}"${hint(field, known)}; ${there}`, field)
    : refusal(command, `refuses its parameters: ${pathText(at)} ${message}`, field);
}

function refusal(command: string, what: string, field?: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "${command}" ${what}`, {
    command,
    ...(field === undefined ? {} : { field }),
  });
}

export const RECORDING_COMMANDS: Token<RecordingCommands> = token('recording-commands');

/** Commands that begin and end a recording of the scheduler while it runs. */
export class RecordingCommands {
  readonly commands: readonly BuiltinCommand[];

  constructor(@inject(RECORDER) recorder: SchedulerRecorder) {
    this.commands = [
      builtin('start-recording', ({ name }) => recorder.start(name)),
      builtin('stop-recording', () => recorder.stop()),
      builtin('recording', () => recorder.current ?? null),
    ];
  }
}
