import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';

import type { PluginContext } from '../../../core/api/index.ts';
import type { Access } from '../access.ts';
import { plainPage } from './plain-page.ts';

/** Where people find the dashboard: its own addresses, and those that Dask's tools link to. */
const PAGES = [
  ...['/', '/status', '/tasks', '/graph', '/memory', '/decisions', '/workers', '/log'],
  ...['/info/main/workers.html', '/individual-progress', '/individual-task-stream'],
  ...['/individual-graph', '/individual-workers-memory', '/individual-workers'],
] as const;

/** Single plots by the names that the extension of JupyterLab shows. */
const PLOTS = {
  Progress: '/individual-progress',
  'Task Stream': '/individual-task-stream',
  Graph: '/individual-graph',
  'Workers Memory': '/individual-workers-memory',
  Workers: '/individual-workers',
} as const;

/** Adds the pages for people. */
export async function addPages(
  app: FastifyInstance,
  { cluster }: PluginContext,
  access: Access,
): Promise<void> {
  const [page, script, style] = await Promise.all(['index.html', 'app.js', 'app.css'].map(asset));
  for (const path of PAGES) {
    app.get(path, { config: { need: 'figures' } }, ({ headers, query }, reply) => {
      void reply.type('text/html; charset=utf-8');
      const refusal = access.refusal('read', headers, query as { token?: unknown });
      if (page === undefined || refusal !== undefined) {
        const note = refusal?.text ?? 'The pages of the dashboard were not built.';
        return reply.send(plainPage(cluster, note));
      }
      return reply.send(page.replace('CHANGE_TOKEN', access.changeToken));
    });
  }
  app.get('/individual-plots.json', { config: { need: 'figures' } }, () => PLOTS);
  const open = { config: { need: 'nothing' } } as const;
  app.get('/assets/app.js', open, (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(script ?? ''),
  );
  app.get('/assets/app.css', open, (_request, reply) =>
    reply.type('text/css; charset=utf-8').send(style ?? ''),
  );
}

/** A file that the build made; undefined when it did not. */
async function asset(name: string): Promise<string | undefined> {
  try {
    const cli = createRequire(import.meta.url).resolve('#cli');
    return await readFile(join(dirname(cli), '../dashboard/assets', name), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
