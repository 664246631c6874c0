import type { FastifyInstance } from 'fastify';

import { type PluginContext, YardmasterError } from '../../../core/api/index.ts';
import { textIn } from './api.ts';

const CHANGE = { config: { need: 'change' } } as const;

/** Adds what changes the cluster. Each is a POST that carries the token of a page. */
export function addChanges(app: FastifyInstance, context: PluginContext): void {
  app.post('/api/policy', CHANGE, async (request) => {
    const slot = textIn(request, 'slot', request.body);
    const { use } = request.body as { use?: unknown };
    if (use === undefined) await context.run('restore-policy', { slot });
    else await context.run('replace-policy', { slot, use });
    context.log.warn({ slot, use }, `the dashboard changed the policy of ${slot}`);
    return {};
  });
  app.post('/api/shadow', CHANGE, async (request) => {
    const slot = textIn(request, 'slot', request.body);
    const use = textIn(request, 'use', request.body);
    await context.run('start-shadow', { slot, use });
    return {};
  });
  app.post('/api/record', CHANGE, (request) => {
    const { keep } = (request.body ?? {}) as { keep?: unknown };
    context.run('record-decisions', { keep });
    return {};
  });
  app.post('/api/retire', CHANGE, (request) => {
    const worker = knownWorker(context, textIn(request, 'worker', request.body));
    context.log.warn({ worker }, `the dashboard retires the worker ${worker}`);
    const retired = Promise.resolve(context.run('amm.retireWorkers', { names: [worker] }));
    retired.catch((error: unknown) => {
      context.log.warn({ err: error, worker }, 'a worker could not be retired');
    });
    return {};
  });
  app.post('/api/restart', CHANGE, (request) => {
    const worker = knownWorker(context, textIn(request, 'worker', request.body));
    context.log.warn({ worker }, `the dashboard restarts the worker ${worker}`);
    return context.run('restart-workers', { workers: [worker], wait: false });
  });
}

function knownWorker({ cluster }: PluginContext, address: string): string {
  if (cluster.workers.has(address)) return address;
  throw new YardmasterError('ERR_NO_WORKER', `there is no worker ${address} any more`, {
    worker: address,
  });
}
