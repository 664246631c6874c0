/** Plugins of workers and nannies: kept here for those who come, sent to those who are there. */
import { YardmasterError } from '../../../core/api/index.ts';
import type { DaskContext, Fields, RpcTable } from '../context.ts';
import { PythonError, PythonException } from '../py-errors.ts';
import { textIn } from '../values.ts';
import { broadcast } from './calls.ts';

export const PLUGINS: RpcTable = {
  register_scheduler_plugin: (request, context) => addToScheduler(request, context),
  register_worker_plugin: (request, context) => add(request, context, 'worker'),
  unregister_worker_plugin: (request, context) => remove(request, context, 'worker'),
  register_nanny_plugin: (request, context) => add(request, context, 'nanny'),
  unregister_nanny_plugin: (request, context) => remove(request, context, 'nanny'),
};

/** Files that clients upload are for the Python that reads graphs. No other plugin can run here. */
async function addToScheduler({ plugin }: Fields, context: DaskContext): Promise<null> {
  const type = plugin instanceof Uint8Array ? await upload(plugin, context) : 'no pickle';
  if (type === undefined) return null;
  throw new PythonException(
    'NotImplementedError',
    `plugins of the scheduler in Python (register_plugin of ${type}) run inside the scheduler, and Yardmaster's scheduler has no Python; see docs/dask.md`,
  );
}

/** The type of the plugin when it carries no file. @throws PythonError when the file cannot be imported */
async function upload(
  pickle: Uint8Array,
  { graphs, log }: DaskContext,
): Promise<string | undefined> {
  try {
    return await graphs.upload(pickle);
  } catch (error) {
    const raised = YardmasterError.is(error, 'ERR_GRAPH_INVALID') ? error.data : {};
    if (raised['exception'] === undefined) {
      log.warn({ err: error }, 'a plugin of the scheduler could not be read');
      return 'something that could not be read';
    }
    throw new PythonError(String(raised['exceptionText']), {
      status: 'uncaught-error',
      exception: raised['exception'],
      traceback: raised['traceback'],
      exception_text: raised['exceptionText'],
      traceback_text: raised['tracebackText'],
    });
  }
}

type Of = 'worker' | 'nanny';

/** Workers and nannies spell it differently. */
const OPS = {
  worker: { add: 'plugin-add', remove: 'plugin-remove' },
  nanny: { add: 'plugin_add', remove: 'plugin_remove' },
} as const;

function tableOf({ workerPlugins, nannyPlugins }: DaskContext, of: Of): Map<string, unknown> {
  return of === 'worker' ? workerPlugins : nannyPlugins;
}

async function add(request: Fields, context: DaskContext, of: Of): Promise<Map<string, unknown>> {
  const { plugin } = request;
  const name = textIn(request, 'name');
  const table = tableOf(context, of);
  if (request['idempotent'] === true && table.has(name)) return new Map();
  table.set(name, plugin);
  if (of === 'nanny') await context.nanniesStarted();
  const msg = { op: OPS[of].add, plugin, name };
  return broadcast(context, { msg, nanny: of === 'nanny' });
}

async function remove(
  request: Fields,
  context: DaskContext,
  of: Of,
): Promise<Map<string, unknown>> {
  const name = textIn(request, 'name');
  if (!tableOf(context, of).delete(name)) {
    throw new PythonException('ValueError', `The ${of} plugin ${name} does not exist`);
  }
  return broadcast(context, { msg: { op: OPS[of].remove, name }, nanny: of === 'nanny' });
}
