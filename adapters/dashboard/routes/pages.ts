import type { FastifyInstance } from 'fastify';

import type { PluginContext } from '../../../core/api/index.ts';
import { plainPage } from './plain-page.ts';

/** Where people find the dashboard: its own addresses, and those that Dask's tools link to. */
const PAGES = ['/', '/status', '/info/main/workers.html'] as const;

/** Adds the pages for people. */
export function addPages(app: FastifyInstance, { cluster }: PluginContext): void {
  for (const path of PAGES) {
    app.get(path, { config: { need: 'figures' } }, (_request, reply) =>
      reply.type('text/html; charset=utf-8').send(plainPage(cluster, 'Figures of the cluster')),
    );
  }
}
