import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { definePlugin, type PluginContext } from '../../../core/api/index.ts';
import { Dashboard } from '../../../adapters/dashboard/dashboard.ts';
import { DASHBOARD_DEFAULTS } from '../../../adapters/dashboard/options.ts';
import { startHost } from '../../kit/test-host.ts';
import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { DaskBench } from '../dask/peers.ts';
import { spin } from './fixtures/tasks.mjs';
import { ask, SILENT, startCluster } from './bench.ts';

describe('the dashboard of a cluster over HTTP', () => {
  let cluster: LocalCluster;
  let at: string;
  beforeAll(async () => {
    ({ cluster, at } = await startCluster());
  });
  afterAll(() => cluster.close());

  it.each(['/nowhere', '/json/nowhere.json', '/metricsx', '/status/x', '/..%2f', '/__proto__'])(
    'answers 404 for %s, which does not exist',
    async (path) => {
      const response = await fetch(at + path);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toContain('text/plain');
    },
  );

  it.each(['/', '/status', '/status?theme=dark', '/status/', '/info/main/workers.html'])(
    'shows a page at %s, under a policy that allows no foreign script',
    async (path) => {
      const response = await fetch(at + path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toContain('text/html');
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(await response.text()).toContain('Yardmaster');
    },
  );

  it('refuses a request under a foreign name, as a rebound name of a foreign site has it', async () => {
    for (const path of ['/', '/metrics', '/json/counts.json']) {
      expect(await ask(at + path, { host: 'attacker.example:8787' })).toMatchObject({
        status: 403,
        text: expect.stringContaining(
          'not served under the name "attacker.example:8787"',
        ) as string,
      });
    }
    expect(await ask(`${at}/health`, { host: 'attacker.example' })).toMatchObject({ text: 'ok' });
    const { port } = new URL(at);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, '[::1]', 'LOCALHOST']) {
      expect((await ask(`${at}/json`, { host })).status).toBe(200);
    }
  });

  it('answers so many requests of one address in a second, and refuses more', async () => {
    // All of them arrive in the same second, however long they take.
    const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    const responses = await Promise.all(Array.from({ length: 150 }, () => fetch(`${at}/metrics`)));
    now.mockRestore();
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(50);
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    expect(responses.filter(({ status }) => status === 200)).not.toEqual([]);
    await expect.poll(async () => (await fetch(`${at}/metrics`)).status).toBe(200);
  });

  it('refuses a request from a page of another site', async () => {
    const { host } = new URL(at);
    const asked = await ask(`${at}/json`, { host, origin: 'http://attacker.example' });
    expect(asked).toMatchObject({
      status: 403,
      text: expect.stringContaining('other sites') as string,
    });
    expect((await ask(`${at}/json`, { host, origin: `http://${host}` })).status).toBe(200);
  });

  it('answers methods that it does not have with 405', async () => {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      expect((await ask(`${at}/json`, {}, method)).status).toBe(405);
    }
  });

  it('gives health, identity and counts', async () => {
    expect(await (await fetch(`${at}/health`)).text()).toBe('ok');
    expect(await (await fetch(`${at}/json`)).json()).toMatchObject({ type: 'scheduler' });
    const counts = await (await fetch(`${at}/json/counts.json`)).json();
    expect(counts).toMatchObject({ workers: 2, cores: 2, tasks: 0, idle: 2, clients: 0 });
  });

  it('takes the next port when its port is taken, and says so', async () => {
    const { port } = new URL(at);
    const messages: string[] = [];
    const log = { ...SILENT, warn: (_: object, text = '') => void messages.push(text) };
    const other = await startCluster({ port: Number(port) }, { log });
    expect(Number(new URL(other.at).port)).toBeGreaterThan(Number(port));
    expect(messages.join()).toContain(`port ${port} is taken; the dashboard is at`);
    expect((await fetch(`${other.at}/health`)).status).toBe(200);
    await other.cluster.close();
  });

  it('frees its port when the cluster closes', async () => {
    const other = await startCluster();
    const port = Number(new URL(other.at).port);
    await fetch(`${other.at}/health`, { headers: { connection: 'keep-alive' } });
    await other.cluster.close();
    await new Promise<void>((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
    });
  });
});

describe('an answer of the dashboard', () => {
  let cluster: LocalCluster;
  let at: string;
  let made: number;
  let identity: () => unknown;
  const asked = async (query = ''): Promise<unknown> => (await fetch(`${at}/json${query}`)).json();
  beforeEach(async () => {
    ({ cluster, at } = await startCluster());
    made = 0;
    identity = () => ({ made });
    // The dashboard asks it first.
    const dask = definePlugin({
      name: 'dask',
      apiVersion: 1,
      setup: (context) => {
        context.command('identity', () => {
          made++;
          return identity();
        });
        return {};
      },
    });
    await cluster.scheduler.addPlugin(dask);
  });
  afterEach(() => cluster.close());

  it('is made once for readers of the same moment, whatever else is in their addresses', async () => {
    const readers = Array.from({ length: 40 }, (_, k) => asked(k % 2 === 0 ? '' : `?reader=${k}`));
    expect(await Promise.all(readers)).toContainEqual({ made: 1 });
    expect(made).toBeLessThan(10);
    await expect.poll(asked).not.toEqual({ made: 1 });
  });

  it('is waited for by all who ask while it is made, and made again after an error', async () => {
    let end: (value: object) => void = () => undefined;
    identity = () => new Promise((resolve) => (end = resolve));
    const readers = [asked(), asked(), asked()];
    await expect.poll(() => made).toBe(1);
    await fetch(`${at}/health`);
    end({ all: 'the same' });
    expect(await Promise.all(readers)).toEqual(Array(3).fill({ all: 'the same' }));
    expect(made).toBe(1);
    identity = () => {
      throw new Error('no identity today');
    };
    await expect.poll(asked).toMatchObject({ error: expect.stringContaining('today') as string });
    identity = () => ({ is: 'back' });
    expect(await asked()).toEqual({ is: 'back' });
  });

  it('is not older than the last change that was made from a page', async () => {
    const policies = async (): Promise<object> =>
      ((await (await fetch(`${at}/api/policies`)).json()) as { policies: object }).policies;
    const page = await (await fetch(cluster.dashboardUrl ?? '')).text();
    const token = /name="change-token" content="([^"]*)"/.exec(page)?.[1] ?? '';
    const headers = { 'content-type': 'application/json', 'x-yardmaster-change': token };
    expect(await policies()).toMatchObject({ queuing: 'family' });
    for (const use of ['direct', 'root-ish', 'direct', 'root-ish']) {
      const body = JSON.stringify({ slot: 'queuing', use });
      expect((await fetch(`${at}/api/policy`, { method: 'POST', headers, body })).status).toBe(200);
      expect(await policies()).toMatchObject({ queuing: use });
    }
  });
});

describe('the metrics of a cluster', () => {
  it('say of each limit what runs, waits, and was refused, also when no task has it any more', async () => {
    const { cluster, at } = await startCluster();
    const read = async (): Promise<string> => (await fetch(`${at}/metrics`)).text();
    const client = await cluster.client();
    const limited = client.with({ limit: { name: 'api', rate: '1/h', maxQueued: 1 }, pure: false });
    const [first, second, third] = [1, 2, 3].map((ms) => limited.submit(spin, ms));
    await first?.result();
    await expect(third?.result()).rejects.toMatchObject({ code: 'ERR_QUEUE_FULL' });
    const text = await read();
    expect(text).toContain('yardmaster_limit_tasks{limit="api",state="running"} 0');
    expect(text).toContain('yardmaster_limit_tasks{limit="api",state="waiting"} 1');
    for (const future of [first, second, third]) future?.release();
    await expect.poll(read).toContain('yardmaster_limit_tasks{limit="api",state="waiting"} 0');
    expect(await read()).toContain('yardmaster_limit_refused_total{limit="api"} 1');
    await cluster.close();
  });

  it('have the names of Dask, and sums that never fall when tasks are forgotten', async () => {
    const { cluster, at } = await startCluster();
    const read = async (): Promise<string> => (await fetch(`${at}/metrics`)).text();
    const client = await cluster.client();
    const future = client.with({ key: 'slow-1' }).submit(spin, 20);
    await future.result();
    const text = await read();
    expect(text).toContain('dask_scheduler_tasks{state="memory"} 1');
    expect(text).toContain('dask_scheduler_clients 1');
    expect(text).toContain('dask_scheduler_workers{state="idle"} 2');
    expect(text).toContain('dask_scheduler_desired_workers ');
    expect(text).toContain(
      'dask_scheduler_prefix_state_totals_total{task_prefix_name="slow",state="memory"} 1',
    );
    const compute = /tasks_compute_seconds_total\{task_prefix_name="slow"\} ([\d.]+)/;
    const seconds = Number(compute.exec(text)?.[1]);
    expect(seconds).toBeGreaterThan(0.01);
    future.release();
    await expect.poll(read).toContain('dask_scheduler_tasks{state="memory"} 0');
    expect(Number(compute.exec(await read())?.[1])).toBe(seconds);
    for (let calls = 0; calls < 3; calls++) await client.with({ pure: false }).call(spin, 20);
    const ofCalls = /tasks_compute_seconds_total\{task_prefix_name="spin"\} ([\d.]+)/;
    const computed = async (): Promise<number> => Number(ofCalls.exec(await read())?.[1] ?? 0);
    await expect.poll(computed, { timeout: 5000 }).toBeGreaterThan(0.05);
    await cluster.close();
  });

  it('say how late timers are, without the time for which they wait anyhow', async () => {
    const { cluster, at } = await startCluster();
    const median = async (): Promise<number> => {
      const text = await (await fetch(`${at}/metrics`)).text();
      const found = /event_loop_delay_seconds\{quantile="0.5"\} ([\d.e-]+)/.exec(text);
      return Number(found?.[1] ?? Infinity);
    };
    await expect.poll(median).toBeLessThan(0.015);
    await cluster.close();
  });

  it('tell the tasks and the memory of each worker', async () => {
    const { cluster, at } = await startCluster();
    const client = await cluster.client();
    const future = client.submit(spin, 1);
    await future.result();
    const text = await (await fetch(`${at}/metrics`)).text();
    const held = text.match(/^dask_worker_tasks\{worker="worker-\d",state="memory"\} \d/gm);
    expect(held?.map((line) => line.at(-1)).toSorted()).toEqual(['0', '1']);
    expect(text).toContain('dask_worker_threads{worker="worker-1"} 1');
    expect(text).toMatch(/dask_worker_memory_bytes\{worker="worker-0",type="managed"\} \d/);
    expect(text).toMatch(/yardmaster_worker_occupancy_seconds\{worker="worker-0"\} 0/);
    await cluster.close();
  });

  it('name at most two hundred prefixes and sum the others', async () => {
    const { cluster, at } = await startCluster();
    const client = await cluster.client();
    const futures = Array.from({ length: 230 }, (_, k) =>
      client
        .with({ key: `op${String.fromCharCode(97 + (k % 26), 97 + Math.floor(k / 26))}-1` })
        .submit(spin, 0),
    );
    await client.gather(futures);
    const text = await (await fetch(`${at}/metrics`)).text();
    const prefixes = new Set(text.match(/task_prefix_name="[^"]*"/g));
    expect(prefixes.size).toBe(201);
    expect(prefixes).toContain('task_prefix_name="(others)"');
    await cluster.close();
  });
});

describe('a dashboard with a token', () => {
  it('answers with the token alone, in a header, an address or the cookie of a browser', async () => {
    const token = 'a-token-of-some-length';
    const { cluster, at } = await startCluster({ token });
    expect((await fetch(`${at}/json`)).status).toBe(401);
    expect((await fetch(`${at}/health`)).status).toBe(200);
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${at}/metrics`, { headers })).status).toBe(200);
    const page = await fetch(cluster.dashboardUrl ?? '');
    expect(page.status).toBe(200);
    const cookie = page.headers.get('set-cookie') ?? '';
    expect(cookie).toContain('HttpOnly; SameSite=Strict');
    const kept = { cookie: cookie.split(';')[0] ?? '' };
    expect((await fetch(`${at}/json`, { headers: kept })).status).toBe(200);
    expect((await fetch(`${at}/json?token=wrong`)).status).toBe(401);
    await cluster.close();
  });
});

describe('the dashboard for clients of Dask', () => {
  let bench: DaskBench;
  let page: string;
  beforeEach(async () => {
    bench = await DaskBench.start();
    const { services } = (await bench.call('identity')) as { services: { dashboard: number } };
    page = `http://127.0.0.1:${services.dashboard}`;
  });
  afterEach(() => bench.close());

  it('gives the identity and counts of Dask', async () => {
    await bench.runningWorker(4001, { nthreads: 3 });
    for (const path of ['/json', '/json/identity.json']) {
      const response = await fetch(page + path);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(await response.json()).toMatchObject({ type: 'Scheduler', n_workers: 1 });
    }
    const counts = await (await fetch(`${page}/json/counts.json`)).json();
    expect(counts).toMatchObject({ workers: 1, cores: 3, tasks: 0, idle: 1 });
  });

  it('gives metrics in the text format of Prometheus', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    const response = await fetch(`${page}/metrics`);
    expect(response.headers.get('content-type')).toContain('version=0.0.4');
    const text = await response.text();
    expect(text).toContain('\ndask_scheduler_tasks{state="processing"} 1\n');
    expect(text).toContain('\ndask_scheduler_clients 1\n');
  });

  it('is that of the plugin dashboard when there is one', async () => {
    const { scheduler } = bench;
    await scheduler.removePlugin('dask');
    await scheduler.addPlugin('dashboard', { options: { port: 0 } });
    await scheduler.addPlugin('dask', { options: { address: 'tcp://127.0.0.1:0' } });
    expect(scheduler.command('dask.dashboard')).toBe(scheduler.command('dashboard.url'));
    const { services } = scheduler.command('dask.identity') as { services: { dashboard: number } };
    expect(services.dashboard).toBe(
      Number(new URL(String(scheduler.command('dashboard.url'))).port),
    );
  });
});

it('a dashboard that cannot listen leaves no hook behind', async () => {
  let hooks = 0;
  const observe = (): (() => void) => {
    hooks++;
    return () => {
      hooks--;
    };
  };
  const host = await startHost();
  const opening = new Promise<unknown>((resolve) => {
    const setup = (context: PluginContext): void => {
      const observed = { ...context, get: () => ({ observe }) } as unknown as PluginContext;
      const parts = { ...DASHBOARD_DEFAULTS, host: '203.0.113.1' };
      Dashboard.open(observed, parts).then(resolve, resolve);
    };
    void host.scheduler.addPlugin(definePlugin({ name: 'pages', apiVersion: 1, setup }));
  });
  expect(await opening).toMatchObject({ code: 'EADDRNOTAVAIL' });
  expect(hooks).toBe(0);
  await host.scheduler.close();
});
