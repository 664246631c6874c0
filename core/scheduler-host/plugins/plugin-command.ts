import type { ParametersSchema } from '../../api/command-parameters.ts';
import { YardmasterError } from '../../api/errors.ts';
import type { CommandHandler } from '../../api/plugin.ts';
import { validatorOf } from '../../config/check.ts';

/** A call that a plugin offers to clients. */
export interface PluginCommand {
  /** Undefined: the handler gets what the client sends, unchecked. */
  readonly parameters: ParametersSchema | undefined;
  readonly handler: CommandHandler;
}

/** What follows the name in `context.command`. */
export type CommandDeclaration =
  | readonly [handler: CommandHandler]
  | readonly [parameters: ParametersSchema, handler: (parameters: never, caller: never) => unknown];

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
  declared: CommandDeclaration,
): PluginCommand {
  const [parameters, handler] =
    declared.length === 1 ? ([undefined, declared[0]] as const) : declared;
  const problem = problemWith(plugin.name, known, command, parameters, handler);
  if (problem === undefined) return { parameters, handler: handler as CommandHandler };
  throw new YardmasterError('ERR_PLUGIN_SETUP', `${plugin.owner} ${problem}`, {
    plugin: plugin.name,
    command,
  });
}

function problemWith(
  plugin: string,
  known: ReadonlyMap<string, PluginCommand>,
  command: unknown,
  parameters: ParametersSchema | undefined,
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
  return parameters === undefined ? undefined : problemWithSchema(command, parameters);
}

function problemWithSchema(command: string, schema: ParametersSchema): string | undefined {
  const what = `declares the parameters of the command "${command}" by`;
  const { type, properties } = schema as { type?: unknown; properties?: unknown };
  if (type !== 'object' || typeof properties !== 'object') {
    return `${what} something else than a JSON schema of type "object" with properties`;
  }
  try {
    validatorOf(schema);
    return undefined;
  } catch (error) {
    return `${what} a JSON schema that is not valid: ${(error as Error).message}`;
  }
}
