import type { AmmStatus, MEMORY_MEASURES } from '../../core/api/index.ts';
import { type Fields, isFields, textIn } from './wire/codec.ts';
import type { DaskContext } from './context.ts';
import { PythonException } from './wire/py-errors.ts';

// `amm_handler`: the Active Memory Manager for `client.amm` of Dask, and more of it by keyword.

type Handler = (request: Fields, context: DaskContext) => unknown;

/**
 * `start`, `stop`, `run_once` and `running` are what Dask's `AMMClientProxy` calls. The others are
 * attributes and methods of its extension that Dask does not offer to clients:
 * `client.sync(client.scheduler.amm_handler, method="add_policy", policy="ReduceReplicas")`.
 */
const METHODS: Readonly<Record<string, Handler>> = {
  start: (_request, context) => runQuietly(context, 'amm.start'),
  stop: (_request, context) => runQuietly(context, 'amm.stop'),
  run_once: (_request, context) => runQuietly(context, 'amm.runOnce'),
  running: (_request, context) => statusOf(context).running,
  interval: (_request, context) => statusOf(context).intervalMs / 1000,
  measure: (_request, context) => inSnakeCase(statusOf(context).measure),
  policies: (_request, context) => statusOf(context).policies.map(({ id }) => id),
  add_policy: async (request, { plugin }) => {
    const { options } = request;
    const given = { use: textIn(request, 'policy'), ...(isFields(options) ? { options } : {}) };
    const added = (await plugin.run('amm.addPolicy', given)) as { readonly id: string };
    return added.id;
  },
  remove_policy: (request, { plugin }) => {
    const removed = plugin.run('amm.removePolicy', { policy: textIn(request, 'policy') });
    return (removed as readonly { readonly id: string }[]).map(({ id }) => id);
  },
};

/** @throws PythonException `AttributeError` for a method that there is not */
export async function handleAmm(request: Fields, context: DaskContext): Promise<unknown> {
  const name = String(request['method']);
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  if (method === undefined) {
    const known = Object.keys(METHODS).join(', ');
    throw new PythonException(
      'AttributeError',
      `the memory manager has no ${name}; there are ${known}`,
    );
  }
  return (await method(request, context)) ?? null;
}

async function runQuietly({ plugin }: DaskContext, command: string): Promise<void> {
  await plugin.run(command);
}

function statusOf({ plugin }: DaskContext): AmmStatus {
  return plugin.run('amm.status') as AmmStatus;
}

function inSnakeCase(measure: (typeof MEMORY_MEASURES)[number]): string {
  return measure.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
