import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { DaskBench } from '../peers.ts';

let bench: DaskBench;
let page: string;
beforeEach(async () => {
  bench = await DaskBench.start();
  const { services } = (await bench.call('identity')) as { services: { dashboard: number } };
  page = `http://127.0.0.1:${services.dashboard}`;
});
afterEach(() => bench.close());

describe('the status page', () => {
  it.each(['/nowhere', '/json/nowhere.json', '/metricsx', '/status/x', '/..%2f', '/__proto__'])(
    'answers 404 for %s, which does not exist',
    async (path) => {
      const response = await fetch(page + path);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toContain('text/plain');
    },
  );

  it.each(['/', '/status', '/status?theme=dark', '/status/'])('is shown at %s', async (path) => {
    const response = await fetch(page + path);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/html');
    expect(await response.text()).toContain('Scheduler at');
  });

  it('answers /health as Dask does', async () => {
    expect(await (await fetch(`${page}/health`)).text()).toBe('ok');
  });

  it('gives identity and counts as JSON', async () => {
    await bench.runningWorker(4001, { nthreads: 3 });
    for (const path of ['/json', '/json/identity.json']) {
      const response = await fetch(page + path);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(await response.json()).toMatchObject({ type: 'Scheduler', n_workers: 1 });
    }
    const counts = await (await fetch(`${page}/json/counts.json`)).json();
    expect(counts).toMatchObject({ workers: 1, cores: 3, tasks: 0, idle: 1 });
  });

  it('gives metrics in the text format of Prometheus, under the names of Dask', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    const response = await fetch(`${page}/metrics`);
    expect(response.headers.get('content-type')).toContain('version=0.0.4');
    const text = await response.text();
    expect(text).toContain('\ndask_scheduler_tasks{state="processing"} 1\n');
    expect(text).toContain('\ndask_scheduler_clients 1\n');
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    for (const line of samples) expect(line).toMatch(/^[a-z_]+(\{[a-z]+="[a-z_-]+"\})? \d+$/);
  });

  it('refuses methods that could change something', async () => {
    expect((await fetch(`${page}/json`, { method: 'POST' })).status).toBe(405);
  });
});
