import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { pageAt } from '../../../adapters/dashboard/paths.ts';
import { startCluster } from './bench.ts';

const WORKER = 'tcp://10.0.0.1:4001';

/** Pages of Dask's dashboard, as its tools and people's bookmarks have them, and ours. */
const LINKS = {
  '/json/index.html': '/json/identity.json',
  '/info': '/workers',
  '/info/': '/workers',
  '/info/main/workers.html': '/workers',
  '/info/main/exceptions.html': '/status',
  '/info/main/logs.html': '/log',
  [`/info/worker/${encodeURIComponent(WORKER)}.html`]: `/workers?worker=${encodeURIComponent(WORKER)}`,
  [`/info/logs/${encodeURIComponent(WORKER)}.html`]: `/workers?worker=${encodeURIComponent(WORKER)}`,
  '/info/task/sum-%3Cb%3E.html': '/status?task=sum-%3Cb%3E',
  '/status/': '/status',
  '/status/?task=sum': '/status?task=sum',
};

describe('the addresses of the dashboard', () => {
  let cluster: LocalCluster;
  let at: string;
  beforeAll(async () => {
    ({ cluster, at } = await startCluster());
  });
  afterAll(() => cluster.close());

  it.each(Object.entries(LINKS))('lead from %s to %s', async (from, to) => {
    const response = await fetch(at + from);
    expect(response.status).toBe(200);
    expect(response.url).toBe(at + to);
  });

  it.each([
    '/profile',
    '/groups',
    '/exceptions',
    '/system',
    '/individual-cpu',
    '/individual-workers-cpu-timeseries',
  ])('have a page at %s, as the dashboard of Dask does', async (path) => {
    expect((await fetch(at + path)).headers.get('content-type')).toContain('text/html');
    expect(pageAt(path)).toBeDefined();
  });

  it.each(['/gpu', '/shuffle', '/counters', '/profile-server', '/individual-rmm-memory'])(
    'answer 404 at %s, which no page here shows',
    async (path) => {
      expect((await fetch(at + path)).status).toBe(404);
    },
  );

  it('list single pages for the extension of JupyterLab, each of which a frame on this machine may show', async () => {
    const plots = (await (await fetch(`${at}/individual-plots.json`)).json()) as object;
    expect(plots).toMatchObject({
      'Individual Progress': '/individual-progress',
      'Individual Task Stream': '/individual-task-stream',
      'Individual Workers Memory': '/individual-workers-memory',
    });
    const paths = Object.values(plots).map(String);
    expect(new Set(paths.map(pageAt)).size).toBe(9);
    for (const path of paths) {
      const response = await fetch(at + path);
      expect(response.status).toBe(200);
      const policy = response.headers.get('content-security-policy');
      expect(policy).toContain("frame-ancestors 'self' http://localhost:* http://127.0.0.1:*");
      expect(response.headers.get('x-frame-options')).toBe(null);
    }
  });

  it('are listed', async () => {
    const { paths } = (await (await fetch(`${at}/sitemap.json`)).json()) as { paths: string[] };
    expect(paths).toContain('/status');
    expect(paths.every((path) => pageAt(path) !== undefined)).toBe(true);
  });
});
