import { YardmasterError } from '../../api/errors.ts';
import { type Caller, type CommandHandler, token, type Token } from '../../api/plugin.ts';
import { hint, show } from '../../shared/words.ts';
import { PendingAnswers } from '../../host/pending-answers.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { LoadedPlugin } from '../plugins/loaded-plugin.ts';
import { PLUGINS, type PluginTable } from '../plugins/plugin-table.ts';
import { isPromise } from '../../util/is-promise.ts';
import { BUILTIN_PARAMETERS, type BuiltinName } from './builtin-parameters.ts';
import { checkParameters } from './check-parameters.ts';
import { SHUTDOWN, type Shutdown } from '../life/shutdown.ts';

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
