/** Plugins of workers and nannies: kept here for later ones, and sent to the present ones. */
import type { DaskContext, Fields, RpcTable } from '../../context.ts';
import { PythonException } from '../py-errors.ts';
import { textIn } from '../../codec/values.ts';
import { broadcast } from './calls.ts';

export const PLUGINS: RpcTable = {
  register_worker_plugin: (request, context) => add(request, context, 'worker'),
  unregister_worker_plugin: (request, context) => remove(request, context, 'worker'),
  register_nanny_plugin: (request, context) => add(request, context, 'nanny'),
  unregister_nanny_plugin: (request, context) => remove(request, context, 'nanny'),
};

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
