import type { Access } from '../messages/operations.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { Clock, Timer } from './clock.ts';
import {
  type ApiVersion,
  checkDefinition,
  type NoOptions,
  type OnlyMembers,
  type OptionsOf,
  type ParametersOf,
  type ParametersSchema,
  type ProvidersOf,
} from './definition.ts';
import type { YardmasterError } from './errors.ts';
import type { HookTable, SchedulerHooks } from './hooks.ts';
import type { DecisionSink } from './insight.ts';
import type { PolicySlots, SlotName } from './policies.ts';
import type { PolicyRoles, RoleName } from './rules.ts';
import { type Provider, token, type Token } from './token.ts';
import type { Connection, ConnectionHandlers } from './transport.ts';
import type { ClusterView } from './views.ts';

export { token, type Token } from './token.ts';

/** Structured logging; pino's own interface fits. */
export interface Logger {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
}

export type { Access };

/** The caller of a command. Neither is set for a call from the scheduler's own process. */
export interface Caller {
  /** Key of the client; already removed when `clientRemoved` is called with it. */
  readonly client?: string;
  /** Address of the worker. */
  readonly worker?: string;
}

/**
 * A call that clients can make by name: `client.command('amm.runOnce')`. The answer, which may be a
 * promise, has to be plain data.
 */
export type CommandHandler = (parameters: unknown, caller: Caller) => unknown;

/** The callers of a command, and its parameters. */
export interface CommandDeclaration<Schema extends ParametersSchema = ParametersSchema> {
  /** The least key that permits the call; `worker`: the key of a worker, or of an admin. Default `admin`. */
  readonly access?: Access;
  /** Default: anything, unchecked. */
  readonly parameters?: Schema;
}

/** A stimulus without its id, which the host gives it. */
export type NewStimulus = Stimulus extends infer S
  ? S extends Stimulus
    ? Omit<S, 'stimulusId'>
    : never
  : never;

/** The policy that fills a slot. */
export interface PolicyInCharge<Slot extends SlotName = SlotName> {
  readonly name: string;
  readonly policy: PolicySlots[Slot];
  /**
   * Reports that the policy threw or gave an unusable answer (`ERR_POLICY`). The caller has to decide as the
   * built-in policy of the slot would.
   * @param what - what it did, in words that follow its name: `threw: …`, `chose …`
   * @param question - what it was asked: the name of its method
   */
  failed(what: string, cause?: unknown, question?: string): void;
  /**
   * Reports that an answer of the policy was used. A simulation refuses the figures of a policy that has failed and has
   * never answered the same question.
   */
  answered(question: string): void;
}

/** The context that a plugin receives when it is set up. */
export interface PluginContext {
  readonly cluster: ClusterView;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted when the plugin is removed, or its scheduler, worker or nanny closes. */
  readonly signal: AbortSignal;
  /**
   * Runs a stimulus after the present one. One of the wrong form is dropped, and counts as a failure of
   * the plugin, as if a hook had thrown.
   */
  enqueue(stimulus: NewStimulus): void;
  /**
   * Calls back at an interval until the timer is cancelled or the plugin is removed. What the
   * callback throws is treated like an error of a hook.
   */
  every(intervalMs: number, callback: () => void): Timer;
  /** Runs a command as a client would: a built-in one, or `<plugin>.<command>`. */
  run(command: string, parameters?: unknown, caller?: Caller): unknown;
  /**
   * Offers a call to clients, under `<name of the plugin>.<command>`, with declared parameters. Before the
   * handler runs, they are checked by their schema, null means "not given", and a parameter that the schema
   * does not list is refused with the nearest name (`ERR_PROTOCOL`). Where a cluster has keys, only the key
   * of an admin permits the call, unless `access` names a smaller one.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when the schema is not valid
   * @example
   * context.command(
   *   'count',
   *   {
   *     access: 'viewer',
   *     parameters: { type: 'object', properties: { prefix: { type: 'string' } }, required: ['prefix'] },
   *   },
   *   ({ prefix }) => counts.get(prefix) ?? 0,
   * );
   */
  command<const Schema extends ParametersSchema>(
    command: string,
    declaration: CommandDeclaration<Schema> & { readonly parameters: Schema },
    handler: (parameters: ParametersOf<Schema>, caller: Caller) => unknown,
  ): void;
  /** Offers a call whose handler gets whatever the caller sends, unchecked. */
  command(command: string, declaration: CommandDeclaration, handler: CommandHandler): void;
  /** Offers a call to admins whose handler gets whatever they send, unchecked. */
  command(command: string, handler: CommandHandler): void;
  /** Fills a policy slot, or with `rules` adds a rule of weight 1, for as long as the plugin is there. */
  providePolicy<Role extends RoleName>(role: Role, policy: PolicyRoles[Role]): void;
  /** Gives a service to other plugins. */
  provide<T>(token: Token<T>, service: T): void;
  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when no plugin provides it */
  get<T>(token: Token<T>): T;
  /** Reports an error that the plugin survived: it is logged, counted, and given to the hook `errorReported`. */
  report(error: YardmasterError): void;
}

/**
 * The services that few plugins need: those that bring workers and clients of other engines, or have policies of their
 * own. Each plugin has its own: `context.get(BRIDGE)`.
 */
export interface Bridge {
  /**
   * Opens a connection to the plugin's own scheduler, as a worker or client from elsewhere has one:
   * put a `Channel` on it and say `hello`. Messages pass by reference and in their own turn; neither
   * side may change them afterwards. It ends with the plugin.
   * @throws YardmasterError `ERR_CLOSED` when the scheduler closes
   */
  readonly connect: (open: (connection: Connection) => ConnectionHandlers) => Connection;
  /**
   * Registers a function that returns the language of a task by its run specification; undefined:
   * any worker will do. While all workers speak it (`WorkerIdentity.language`), a task may run
   * anywhere; otherwise only on workers that speak it. The registration lasts as long as the plugin
   * is loaded; the latest one is used.
   */
  readonly tellLanguages: (languageOf: (runSpec: unknown) => string | undefined) => void;
  /**
   * Adds hooks until they are removed or the plugin is: for a plugin that observes only now and then, and
   * costs nothing in between. They take effect after the present stimulus.
   * @returns what removes them
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when a hook is not a function
   */
  readonly observe: (hooks: HookTable) => () => void;
  /**
   * The policy in charge of a slot, for a plugin that asks it. Call this anew whenever a decision begins:
   * the policy may be replaced between two stimuli.
   */
  readonly policyIn: <Slot extends SlotName>(slot: Slot) => PolicyInCharge<Slot>;
  /**
   * Says how a policy fared that is in no slot, but the plugin's own. A failure is reported as by `report`. A
   * simulation refuses the figures of a policy that has failed and has never done well.
   * @param failure - undefined: it did well
   */
  readonly judge: (policy: string, failure?: YardmasterError) => void;
  /** Calls an extension of the plugin's own, and has it named when that takes long: `the policy "mine" of the manager`. */
  readonly timed: <T>(subject: string, call: () => T) => T;
  /** Extensions of the scheduler that were slow within the last minute, with their longest call in milliseconds. */
  readonly slowCalls: () => ReadonlyMap<string, number>;
  /**
   * Loads what a `use` of the plugin's own options names (a policy class, say) and checks the options
   * that go with it against its `optionsSchema`.
   * @param at - where the entry stands in the plugin's options, for messages: `['policies', 0]`. Default: a call at run time named it
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
   */
  readonly load: (entry: UseEntry, at?: readonly (string | number)[]) => Promise<LoadedExtension>;
  /** Records decisions about tasks, for `why`. */
  readonly decisions: DecisionSink;
  /** Closes the whole scheduler, in good order and soon. */
  readonly shutDown: () => void;
}

/** The token of that service. */
export const BRIDGE: Token<Bridge> = token('bridge');

/** Names an extension and gives its options. */
export interface UseEntry {
  /** Built-in name, path, package, or (in code) the definition, class or instance itself. */
  readonly use: unknown;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** An extension that a `use` names. */
export interface LoadedExtension {
  /** The export: a definition, a class, or an instance. */
  readonly exported: unknown;
  /**
   * An instance of the class, made with the checked options; anything else as it is.
   * @throws YardmasterError `ERR_PLUGIN_LOAD` when the constructor throws
   */
  create(): unknown;
  /**
   * For the end of a message about what cannot be used: `; it is a transport, which belongs under
   * scheduler.transport`, or '' when that is not clear.
   */
  insteadOf(wanted: ExtensionKind): string;
  /** Checked, with defaults filled in. */
  readonly options: Readonly<Record<string, unknown>>;
  /** For messages to people: `EnsureBroadcast from ./policies.js`. */
  readonly source: string;
}

/** Loads what the options of a plugin name, before anything is set up. */
export interface ExtensionLoader {
  /**
   * Loads the entries of a list and makes something of each.
   * @throws YardmasterError with the problems of all entries
   */
  loadAll<T>(wanted: WantedExtensions<T>): Promise<T[]>;
}

/** A list of extensions in the options of a plugin. */
export interface WantedExtensions<T> {
  readonly entries: readonly UseEntry[];
  /** The place of the list in the plugin's options, for messages: `['policies']`. */
  readonly at: readonly (string | number)[];
  /** Names of built-in ones that fit, for messages about a name that is not known. Default: none. */
  readonly known?: readonly string[];
  /** May throw, which becomes a problem of that entry. */
  make(loaded: LoadedExtension): T;
}

/** The kinds of extensions that a `use` can name. */
export type ExtensionKind =
  | 'plugin'
  | 'worker-plugin'
  | 'nanny-plugin'
  | 'policy'
  | 'rule'
  | 'amm-policy'
  | 'transport'
  | 'executor'
  | 'store';

/**
 * Short names of what is built in, with what loads each: a definition or a class. Nothing is loaded
 * before it is used. A policy whose name another slot has as well stands as `slot/name`.
 */
export type Builtins = Readonly<Record<string, () => Promise<unknown>>>;

/** The methods of a plugin for the moments of its life, whether of a scheduler, a worker or a nanny. */
export interface PluginLife {
  /** After all plugins were set up, and before the first hook. */
  start?(): void | Promise<void>;
  /** Milliseconds that `start` may take; Infinity for any time. Default: 10 s. */
  readonly startTimeoutMs?: number;
  /** First thing when its owner closes. Errors are logged. */
  beforeClose?(): void | Promise<void>;
  /** Called when the plugin is removed or replaced, or its owner closes. Errors are logged. */
  close?(): void | Promise<void>;
}

/** The instance that `setup` of a plugin of the scheduler returns. */
export interface PluginInstance extends HookTable, PluginLife {}

/** The form of all plugins that a configuration can name: of schedulers, workers and nannies. */
export interface Definition<Kind extends ExtensionKind, Context, Instance, Options = never> {
  readonly kind: Kind;
  readonly name: string;
  readonly apiVersion: ApiVersion;
  /** JSON schema of the options. */
  readonly optionsSchema?: object;
  /** Names of plugins that must come before this one; checked, never used to reorder. */
  readonly requires?: readonly string[];
  /**
   * Replaces parts (`tokens`) of a scheduler or worker whose configuration lists the plugin. Not for plugins that are
   * added at run time: the parts exist by then. Nannies have none.
   */
  readonly provide?: readonly Provider[];
  /**
   * Loads what the options name, before any plugin is set up, so that `check-config` finds what is wrong
   * with it. What it returns is the third argument of `setup`.
   */
  readonly load?: (loader: ExtensionLoader, options: Options) => Promise<unknown>;
  /** May be async; ten seconds at most. */
  readonly setup: Setup<Context, Instance, Options, never>;
}

type Setup<Context, Instance, Options, Loaded> = (
  context: Context,
  options: Options,
  loaded: Loaded,
) => Instance | void | Promise<Instance | void>;

/** A definition as an author writes it: the schema gives the type of the options. */
export type Written<Kind extends ExtensionKind, Context, Instance, Schema, Loaded, Parts> = Omit<
  Definition<Kind, Context, Instance>,
  'kind' | 'optionsSchema' | 'provide' | 'load' | 'setup'
> & {
  readonly optionsSchema?: Schema;
  readonly provide?: ProvidersOf<Parts>;
  readonly load?: (loader: ExtensionLoader, options: OptionsOf<Schema>) => Promise<Loaded>;
  readonly setup: Setup<Context, Instance, OptionsOf<Schema>, Loaded>;
};

/** A plugin of the scheduler. */
export type PluginDefinition<Options = never> = Definition<
  'plugin',
  PluginContext,
  PluginInstance,
  Options
>;

/**
 * Declares a plugin; types its options and its hooks.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function definePlugin<
  const Schema extends object = NoOptions,
  Loaded = undefined,
  Instance extends PluginInstance = PluginInstance,
  const Parts extends readonly unknown[] = readonly [],
>(
  definition: Written<
    'plugin',
    PluginContext,
    Instance & OnlyMembers<Instance, keyof PluginInstance>,
    Schema,
    Loaded,
    Parts
  >,
): PluginDefinition<OptionsOf<Schema>> {
  checkDefinition('definePlugin', definition, '{ name, apiVersion: 1, setup }');
  return { kind: 'plugin', ...definition };
}

/**
 * The class form of a plugin, as in Dask: implement it, and give an instance to
 * `scheduler.addPlugin`. A config file names the class; its options go to the constructor.
 */
export interface SchedulerPlugin extends Partial<SchedulerHooks>, PluginLife {
  /** Default: the name of the class. */
  readonly name?: string;
  /** Set up, before the first hook. */
  setup?(context: PluginContext): void | Promise<void>;
}

/** Version of the package, for messages to people; a test compares it with package.json. */
export const VERSION = '0.1.0';
