import type { FastifyInstance } from 'fastify';

import type { ClusterView } from '../../../core/api/index.ts';
import type { Access } from '../access.ts';
import { asset } from '../asset.ts';
import { pagePaths, plotsForJupyter } from '../paths.ts';
import { escape, plainPage } from './plain-page.ts';

/**
 * Paths of Dask's pages about one worker or task, and those in folders, with the page that they lead to. Relative, because a
 * proxy may put the dashboard below another path; the pages themselves have one level for the same reason.
 */
const REDIRECTS: readonly (readonly [from: string, to: (name: string) => string])[] = [
  ['/info', () => 'workers'],
  ['/info/main/workers.html', () => '../../workers'],
  ['/info/main/exceptions.html', () => '../../status'],
  ['/info/main/logs.html', () => '../../log'],
  ['/info/worker/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/logs/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/call-stacks/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/task/*', (key) => `../../status?task=${key}`],
  ['/info/call-stack/*', (key) => `../../status?task=${key}`],
  ['/statics/individual-cluster-map.html', () => '../individual-cluster-map'],
];

/**
 * Adds the pages for people.
 * @param past - what the pages have to know when they show a scheduler that is gone; undefined: a live one
 */
export async function addPages(
  app: FastifyInstance,
  cluster: ClusterView,
  access: Access,
  past?: object,
): Promise<void> {
  const [page, script, style] = await Promise.all(['index.html', 'app.js', 'app.css'].map(asset));
  const figures = { config: { need: 'figures' } } as const;
  for (const path of pagePaths()) {
    app.get(path, figures, ({ headers, query, url }, reply) => {
      const [at = '/', rest] = url.split('?');
      if (at.length > 1 && at.endsWith('/')) {
        return reply.redirect(`..${path}${rest === undefined ? '' : `?${rest}`}`);
      }
      void reply.type('text/html; charset=utf-8');
      const refusal = access.refusal('read', headers, query as { token?: unknown });
      if (page === undefined || refusal !== undefined) {
        const note = refusal?.text ?? 'The pages of the dashboard were not built.';
        return reply.send(plainPage(cluster, note));
      }
      return reply.send(
        page
          .replace('CHANGE_TOKEN', () =>
            access.changeTokenFor(headers, query as { token?: unknown }),
          )
          .replace('PAST', () => (past === undefined ? '' : escape(JSON.stringify(past)))),
      );
    });
  }
  for (const [from, to] of REDIRECTS) {
    app.get(from, figures, ({ params }, reply) => {
      const { '*': name = '' } = params as { '*'?: string };
      return reply.redirect(to(encodeURIComponent(name.replace(/\.html$/, ''))));
    });
  }
  app.get('/individual-plots.json', figures, () => plotsForJupyter());
  app.get('/sitemap.json', figures, () => ({ paths: pagePaths() }));
  const open = { config: { need: 'nothing' } } as const;
  app.get('/assets/app.js', open, (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(script ?? ''),
  );
  app.get('/assets/app.css', open, (_request, reply) =>
    reply.type('text/css; charset=utf-8').send(style ?? ''),
  );
}
