/** Plugins of workers and nannies, and modules that are loaded before anything starts. */
import type { WorkerIdentity, WorkerStatus } from '../state/worker.ts';
import type { WorkerTaskStateName } from '../state/state-names.ts';
import type { Clock } from './clock.ts';
import { checkDefinition, type NoOptions, type OnlyMembers, type OptionsOf } from './definition.ts';
import type { YardmasterError } from './errors.ts';
import type { HookResult } from './hooks.ts';
import type { Definition, Logger, PluginContext, PluginLife, Written } from './plugin.ts';

/** The context that every plugin outside of the scheduler receives when it is set up. */
export interface LocalPluginContext extends Pick<
  PluginContext,
  'clock' | 'log' | 'signal' | 'every'
> {
  /** Name of the plugin. */
  readonly name: string;
  /** Reports an error that the plugin survived: it is logged and counted. */
  report(error: YardmasterError): void;
}

/** The context of a plugin of a worker. */
export interface WorkerPluginContext extends LocalPluginContext {
  /** The worker: address, name, threads, resources. */
  readonly worker: WorkerIdentity;
  /** Keys of the results that are here, at present. */
  results(): readonly string[];
  /** Publishes a message under topics on the scheduler. Lost while that is away. */
  logEvent(topics: readonly string[], message: unknown): void;
}

/** Hooks of a worker's plugins. All are synchronous, and called in the order of the plugins. */
export interface WorkerHooks {
  /** After each step of a task on this worker. Called very often: cheap, please. */
  taskTransition(
    key: string,
    start: WorkerTaskStateName,
    finish: WorkerTaskStateName,
    stimulusId: string,
  ): HookResult;
  /** The worker was paused, has resumed, or is about to close. */
  statusChanged(status: WorkerStatus): HookResult;
  /** The connection to the scheduler is lost; `schedulerBack` or the end follows. */
  schedulerLost(): HookResult;
  schedulerBack(): HookResult;
}

/** The instance that the `setup` of a worker plugin returns. */
export interface WorkerPluginInstance extends Partial<WorkerHooks>, PluginLife {}

/** A plugin of a worker that a configuration, or `client.registerWorkerPlugin`, can name. */
export type WorkerPluginDefinition<Options = never> = Definition<
  'worker-plugin',
  WorkerPluginContext,
  WorkerPluginInstance,
  Options
>;

/**
 * Declares a plugin of workers; types its options and its hooks.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineWorkerPlugin<
  const Schema extends object = NoOptions,
  Loaded = undefined,
  Instance extends WorkerPluginInstance = WorkerPluginInstance,
  const Parts extends readonly unknown[] = readonly [],
>(
  definition: Written<
    'worker-plugin',
    WorkerPluginContext,
    Instance & OnlyMembers<Instance, keyof WorkerPluginInstance>,
    Schema,
    Loaded,
    Parts
  >,
): WorkerPluginDefinition<OptionsOf<Schema>> {
  checkDefinition('defineWorkerPlugin', definition, '{ name, apiVersion: 1, setup }');
  return { kind: 'worker-plugin', ...definition };
}

/** The class form of a worker plugin, as in Dask. Its options go to the constructor. */
export interface WorkerPlugin extends WorkerPluginInstance {
  /** Default: the name of the class. */
  readonly name?: string;
  setup?(context: WorkerPluginContext): void | Promise<void>;
}

/** The end of a worker process. */
export interface ProcessEnding {
  /** For people. */
  readonly reason: string;
  readonly pid: number | undefined;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

/** The context of a plugin of a nanny. */
export interface NannyPluginContext extends LocalPluginContext {
  /** Name of the worker that the nanny looks after. */
  readonly worker: string;
  /** Ends the process of the worker, at once; another one takes its place. */
  restart(): void;
}

/** Hooks of a nanny's plugins. All are synchronous. */
export interface NannyHooks {
  /** A process is about to be started. What is written into `environment` is there in the process. */
  processStarting(environment: Record<string, string>): HookResult;
  /** The worker in the process has registered. */
  processRegistered(address: string): HookResult;
  processEnded(ending: ProcessEnding): HookResult;
}

/** The instance that the `setup` of a nanny plugin returns. */
export interface NannyPluginInstance extends Partial<NannyHooks>, PluginLife {}

/** A plugin of a nanny that a configuration can name. It is set up before the first process starts. */
export type NannyPluginDefinition<Options = never> = Definition<
  'nanny-plugin',
  NannyPluginContext,
  NannyPluginInstance,
  Options
>;

/**
 * Declares a plugin of nannies; types its options and its hooks.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineNannyPlugin<
  const Schema extends object = NoOptions,
  Loaded = undefined,
  Instance extends NannyPluginInstance = NannyPluginInstance,
  const Parts extends readonly unknown[] = readonly [],
>(
  definition: Written<
    'nanny-plugin',
    NannyPluginContext,
    Instance & OnlyMembers<Instance, keyof NannyPluginInstance>,
    Schema,
    Loaded,
    Parts
  >,
): NannyPluginDefinition<OptionsOf<Schema>> {
  checkDefinition('defineNannyPlugin', definition, '{ name, apiVersion: 1, setup }');
  return { kind: 'nanny-plugin', ...definition };
}

/** The class form of a nanny plugin. */
export interface NannyPlugin extends NannyPluginInstance {
  readonly name?: string;
  setup?(context: NannyPluginContext): void | Promise<void>;
}

/** The kind of process in which a module is loaded before anything starts. */
export type PreloadRole = 'scheduler' | 'worker' | 'nanny';

/** The context that the `setup` and the `close` of such a module receive. */
export interface PreloadContext {
  readonly role: PreloadRole;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The exports of a module that is loaded before anything starts: one of both at least. */
export interface PreloadModule<Options = unknown> {
  /** Before anything else of the scheduler, worker or nanny is there. Ten seconds at most. */
  setup?(context: PreloadContext, options: Options): void | Promise<void>;
  /** After everything else has closed. Ten seconds at most. */
  close?(context: PreloadContext, options: Options): void | Promise<void>;
}
