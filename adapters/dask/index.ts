import { NO_PARAMETERS } from '../../core/api/definition.ts';
import { BRIDGE, definePlugin } from '../../core/api/index.ts';
import { toPlain } from './wire/plain.ts';
import { languageOf } from './values.ts';
import { Front } from './front.ts';
import type { DaskPlugin, MakeExtension } from './context.ts';
import {
  makeEventFlags,
  makeLocks,
  makeMultiLocks,
  makeQueues,
  makeSemaphores,
  makeVariables,
} from './coordination.ts';
import { makeMemorySampler, makePublish, makePubSub } from './publish.ts';
import { makeShuffle } from './shuffle.ts';
import { isNamed, pythonCommands } from './graph/index.ts';
import { onInterface } from './wire/listener.ts';
import { DASK_OPTIONS_SCHEMA } from './options.ts';
import { schedulerIdentity } from './identity.ts';
import { RPC } from './operations.ts';
import { credentialsFor } from './tls-config.ts';

/** The port of the dashboard of Dask's schedulers. */
const STATUS_PORT = 8787;

export type { DaskOptions } from './options.ts';

/** The extensions of the scheduler, in Dask's sense: locks, queues, variables and the like. */
const EXTENSIONS: readonly MakeExtension[] = [
  makeEventFlags,
  makeLocks,
  makeSemaphores,
  makeMultiLocks,
  makeQueues,
  makeVariables,
  makePublish,
  makePubSub,
  makeMemorySampler,
  makeShuffle,
];

/**
 * Dask's own clients, workers and nannies, unmodified, with this scheduler in the place of theirs.
 * The command `dask.address` returns the address at which it listens.
 */
export default definePlugin({
  name: 'dask',
  apiVersion: 1,
  optionsSchema: DASK_OPTIONS_SCHEMA,
  setup(context, options) {
    const plugin: DaskPlugin = { ...context, ...context.get(BRIDGE) };
    const listenAddress = onInterface(options.address, options.interface);
    const tls = credentialsFor(listenAddress, options.tls, process.env);
    const front = new Front({
      ...options,
      plugin,
      tls,
      listenAddress,
      pythons: pythonCommands(options.python),
      // One that is to be found is chosen by the version of the first client.
      startsPython: isNamed(options.python),
      statusPort: options.statusPort ?? (tls === undefined ? STATUS_PORT : -1),
      rpc: RPC,
      extensions: EXTENSIONS,
    });
    const { hooks } = front.operations;
    plugin.command('address', { access: 'client', parameters: NO_PARAMETERS }, () => front.address);
    plugin.command('dashboard', { parameters: NO_PARAMETERS }, () => front.dashboardUrl ?? null);
    plugin.command('identity', { access: 'client', parameters: NO_PARAMETERS }, () =>
      toPlain(schedulerIdentity(front)),
    );
    plugin.tellLanguages(languageOf);
    return {
      ...hooks,
      // A module of Python that is preloaded may take any time, as in Dask.
      ...(options.preload.length === 0 ? {} : { startTimeoutMs: Infinity }),
      start: async () => {
        const address = await front.listen();
        plugin.log.info({ address }, 'listening for Dask');
      },
      graphUpdated: (update) => {
        front.pendingWants.tasksAdded(update.tasks);
        hooks.graphUpdated?.(update);
      },
      restarted: () => front.operations.restarted(),
      beforeClose: () => front.sayGoodbye(),
      close: () => front.close(),
    };
  },
});
