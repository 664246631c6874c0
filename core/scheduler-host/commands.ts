import {
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
} from '../api/definition.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import type { Caller, CommandDeclaration, CommandHandler } from '../api/plugin.ts';
import { PendingAnswers } from '../host/answers.ts';
import { LOG_LEVELS } from '../host/log.ts';
import { type Access, ACCESS_NAMES } from '../messages/operations.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { check, mistakeIn, refuse } from '../shared/schema.ts';
import { hint, show } from '../shared/words.ts';
import { TASK_STATE_NAMES } from '../state/state-names.ts';
import { isPlainObject, isPromise } from '../util/values.ts';
import { RECORDER, type SchedulerRecorder } from './journal.ts';
import { type LoadedPlugin, PluginTable } from './plugin-table.ts';
import { Shutdown } from './shutdown.ts';

export interface CommandSource {
  readonly commands: Iterable<BuiltinCommand>;
}

/**
 * Calls that clients make by name: the built-in ones, and `<plugin>.<command>`. Answers are plain
 * data; keys and addresses come as pairs and never as names of fields.
 */
@collaborator
export class Commands {
  private readonly builtin = new Map<string, CommandHandler>([['commands', () => this.names()]]);
  /** Of the built-in commands; plugins have their own. */
  private readonly answers = new PendingAnswers();

  constructor(
    private readonly plugins: PluginTable,
    private readonly shutdown: Shutdown,
  ) {}

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
    const plugin = this.pluginOf(name);
    const command = this.find(name, plugin);
    if (command !== undefined) {
      const { parameters: schema, handler } = command;
      const given = schema === undefined ? parameters : checkParameters(name, schema, parameters);
      if (plugin !== undefined) return runOf(plugin, name, () => handler(given, caller));
      const answer: unknown = handler(given, caller);
      return isPromise(answer) ? this.answers.add(answer) : answer;
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

  /**
   * The least key that permits the call of a command: of one that does not exist that of a viewer, so that whoever
   * may ask anything learns the right name.
   */
  accessOf(name: string): Access {
    return this.find(name)?.access ?? 'viewer';
  }

  private names(): string[] {
    const ofPlugins = this.plugins.all.flatMap((plugin) =>
      [...plugin.commands.keys()].map((command) => `${plugin.name}.${command}`),
    );
    return [...this.builtin.keys(), ...ofPlugins];
  }

  private find(name: string, plugin = this.pluginOf(name)): PluginCommand | undefined {
    if (plugin !== undefined) return plugin.commands.get(name.slice(name.indexOf('.') + 1));
    const handler = this.builtin.get(name);
    return handler && { ...BUILTIN_COMMANDS[name as BuiltinName], handler };
  }

  /** Names of built-in commands have no dot. */
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
  const message = `${subject} threw: ${messageOf(cause)}`;
  return new YardmasterError('ERR_PLUGIN_HOOK', message, data, { cause });
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
/** The requests that go to workers by way of the scheduler. */
const REQUEST = {
  method: { type: 'string', enum: ['actor-call', 'inspect', 'run'] },
} as const;

/** The access and the parameters of each built-in command of the scheduler. */
export const BUILTIN_COMMANDS = {
  // They only look.
  identity: { access: 'viewer', parameters: NO_PARAMETERS },
  story: { access: 'viewer', parameters: SOME_KEYS },
  processing: { access: 'viewer', parameters: NO_PARAMETERS },
  'has-what': { access: 'viewer', parameters: NO_PARAMETERS },
  nbytes: { access: 'viewer', parameters: SOME_KEYS },
  tasks: { access: 'viewer', parameters: SOME_KEYS },
  'task-counts': { access: 'viewer', parameters: parameters({}, { withPast: FLAG }) },
  'what-waits': { access: 'viewer', parameters: NO_PARAMETERS },
  'list-tasks': {
    access: 'viewer',
    parameters: parameters(
      {},
      {
        state: { type: 'string', enum: TASK_STATE_NAMES },
        prefix: TEXT,
        limit: { type: 'integer', minimum: 1, maximum: 10_000 },
      },
    ),
  },
  executing: { access: 'viewer', parameters: parameters({}, { workers: TEXTS }) },
  'idle-since': { access: 'viewer', parameters: NO_PARAMETERS },
  plugins: { access: 'viewer', parameters: NO_PARAMETERS },
  commands: { access: 'viewer', parameters: NO_PARAMETERS },
  events: { access: 'viewer', parameters: parameters({}, { topic: TEXT }) },
  'kill-grace': { access: 'viewer', parameters: NO_PARAMETERS },
  policies: { access: 'viewer', parameters: NO_PARAMETERS },
  shadow: { access: 'viewer', parameters: SLOT },
  why: { access: 'viewer', parameters: parameters({ key: TEXT }) },
  'worker-plugins': { access: 'viewer', parameters: NO_PARAMETERS },
  'nanny-plugins': { access: 'viewer', parameters: NO_PARAMETERS },
  versions: { access: 'viewer', parameters: LOOK },
  logs: {
    access: 'viewer',
    parameters: parameters(
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
  },
  connections: { access: 'viewer', parameters: parameters({}, ASK) },
  // They act for one client, or ask workers on its behalf.
  'claim-keys': { access: 'client', parameters: KEYS },
  'unclaim-keys': { access: 'client', parameters: KEYS },
  'reserve-data': {
    access: 'client',
    parameters: parameters(
      { keys: TEXTS, fingerprints: TEXTS },
      { nbytes: { type: 'array', items: COUNT } },
    ),
  },
  'release-data': { access: 'client', parameters: KEYS },
  // Each has its candidates: some hundred bytes to a few kilobytes.
  'record-decisions': {
    access: 'client',
    parameters: parameters({ keep: { type: 'integer', minimum: 0, maximum: 100_000 } }),
  },
  recording: { access: 'client', parameters: NO_PARAMETERS },
  broadcast: { access: 'client', parameters: parameters(REQUEST, { ...ASK, parameters: OBJECT }) },
  proxy: {
    access: 'client',
    parameters: parameters(
      { ...REQUEST, worker: TEXT },
      { timeoutMs: TIMEOUT, parameters: OBJECT },
    ),
  },
  'call-stacks': { access: 'client', parameters: parameters({}, { ...ASK, keys: TEXTS }) },
  // They change or stop the cluster for all of its clients.
  'replace-policy': { access: 'admin', parameters: POLICY },
  'restore-policy': { access: 'admin', parameters: SLOT },
  'promote-shadow': { access: 'admin', parameters: SLOT },
  'start-shadow': { access: 'admin', parameters: POLICY },
  'stop-shadow': { access: 'admin', parameters: SLOT },
  'start-recording': { access: 'admin', parameters: parameters({}, { name: TEXT }) },
  'stop-recording': { access: 'admin', parameters: NO_PARAMETERS },
  'register-worker-plugin': { access: 'admin', parameters: PLUGIN },
  'unregister-worker-plugin': { access: 'admin', parameters: PLUGIN_NAME },
  'register-nanny-plugin': { access: 'admin', parameters: PLUGIN },
  'unregister-nanny-plugin': { access: 'admin', parameters: PLUGIN_NAME },
  'dump-state': { access: 'admin', parameters: LOOK },
  'restart-workers': {
    access: 'admin',
    parameters: parameters(
      {},
      { ...ASK, errors: { type: 'string', enum: ['raise', 'return'] }, wait: FLAG },
    ),
  },
  restart: { access: 'admin', parameters: parameters({}, { wait: FLAG, timeoutMs: TIMEOUT }) },
} as const satisfies Readonly<Record<string, Required<CommandDeclaration>>>;

export type BuiltinName = keyof typeof BUILTIN_COMMANDS;

/** The checked parameters of a built-in command. */
export type Given<Name extends BuiltinName> = ParametersOf<
  (typeof BUILTIN_COMMANDS)[Name]['parameters']
>;

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
 * @throws YardmasterError `ERR_PROTOCOL` with every problem
 */
export function checkParameters(
  command: string,
  schema: ParametersSchema,
  parameters: unknown,
): Readonly<Record<string, unknown>> {
  const { value, problems } = check(schema, parameters ?? {});
  refuse(`the command "${command}"`, problems, 'ERR_PROTOCOL', { command });
  return value as Readonly<Record<string, unknown>>;
}

export interface PluginCommand {
  readonly access: Access;
  /** Undefined: the handler gets what the caller sends, unchecked. */
  readonly parameters: ParametersSchema | undefined;
  readonly handler: CommandHandler;
}

/** The arguments after the name in `context.command`. */
export type DeclaredCommand =
  | readonly [handler: CommandHandler]
  | readonly [declaration: CommandDeclaration, handler: (...given: never) => unknown];

/**
 * Reads a declaration.
 * @param plugin - its name, and what messages call it
 * @param known - the commands that it has declared before
 * @throws YardmasterError `ERR_PLUGIN_SETUP`
 */
export function readCommand(
  plugin: { readonly name: string; readonly owner: string },
  known: ReadonlyMap<string, PluginCommand>,
  command: string,
  declared: DeclaredCommand,
): PluginCommand {
  const [declaration, handler] = declared.length === 1 ? ([{}, declared[0]] as const) : declared;
  const problem = problemWith(plugin.name, known, command, declaration, handler);
  if (problem === undefined) {
    const { access = 'admin', parameters } = declaration;
    return { access, parameters, handler: handler as CommandHandler };
  }
  throw new YardmasterError('ERR_PLUGIN_SETUP', `${plugin.owner} ${problem}`, {
    plugin: plugin.name,
    command,
  });
}

function problemWith(
  plugin: string,
  known: ReadonlyMap<string, PluginCommand>,
  command: unknown,
  declaration: unknown,
  handler: unknown,
): string | undefined {
  if (typeof command !== 'string' || command === '') {
    return `registers a command without a name: write context.command('name', handler), which clients call as "${plugin}.name"`;
  }
  if (typeof handler !== 'function') {
    return `registers the command "${command}" without a function that handles it`;
  }
  if (known.has(command)) {
    return `registers the command "${command}" twice: give one of both another name`;
  }
  if (!isPlainObject(declaration)) {
    return `declares the command "${command}" by ${show(declaration)}: write context.command('${command}', { access: 'client', parameters: … }, handler)`;
  }
  const other = Object.keys(declaration).find((key) => key !== 'access' && key !== 'parameters');
  if (other !== undefined) {
    const remedy =
      other === 'properties' || other === 'type'
        ? ': write { parameters: … } around the schema'
        : '';
    return `declares the command "${command}" with "${other}"; there are access and parameters${remedy}`;
  }
  const { access = 'admin', parameters } = declaration as CommandDeclaration;
  if (!ACCESS_NAMES.includes(access)) {
    return `declares the access of the command "${command}" as ${show(access)}: it is one of ${ACCESS_NAMES.join(', ')}`;
  }
  return parameters === undefined ? undefined : problemWithSchema(command, parameters);
}

function problemWithSchema(command: string, schema: ParametersSchema): string | undefined {
  const what = `declares the parameters of the command "${command}" by`;
  const { type, properties } = schema as { type?: unknown; properties?: unknown };
  if (type !== 'object' || typeof properties !== 'object') {
    return `${what} something else than a JSON schema of type "object" with properties`;
  }
  const mistake = mistakeIn(schema);
  return mistake === undefined ? undefined : `${what} a JSON schema that is not valid: ${mistake}`;
}

/** Commands that begin and end a recording of the scheduler while it runs. */
@collaborator
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
