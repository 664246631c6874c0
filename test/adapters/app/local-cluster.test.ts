import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Logger } from '../../../core/api/index.ts';
import { add, killOnce, meet, processId, say, slowSquare, square } from '../cli/fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-app-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('a local cluster', () => {
  test('with threads computes in parallel', async () => {
    const cluster = await LocalCluster.start({ workers: 2, threads: 1 });
    try {
      const client = await cluster.client();
      const pair = client.map(meet, [folder, folder], ['left', 'right'], ['right', 'left']);
      expect(await client.gather(pair)).toEqual(['left', 'right']);
      expect(await client.submit(processId).result()).toBe(process.pid);
      expect(cluster.pids).toEqual([]);
    } finally {
      await cluster.close();
    }
    await expect(cluster.client()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    await expect(cluster.scaleTo(1)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('is closed at the end of the block that uses it', async () => {
    let kept: LocalCluster;
    {
      await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
      await using client = await cluster.client();
      expect(await client.submit(square, 3).result()).toBe(9);
      kept = cluster;
    }
    await expect(kept.client()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('refuses a configuration that is wrong, and leaves nothing behind', async () => {
    const config = { scheduler: { allowedFailures: -1 } };
    await expect(LocalCluster.start({ config, mode: 'inline' })).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringContaining('allowedFailures') as string,
    });
    await expect(LocalCluster.start({ workers: -1, mode: 'inline' })).rejects.toMatchObject({
      code: 'ERR_CONFIG',
    });
  });

  test('offers the resources that tasks ask for', async () => {
    const cluster = await LocalCluster.start({
      mode: 'inline',
      workers: 1,
      resources: { GPU: 1 },
      config: { scheduler: { noWorkersTimeout: '300ms' } },
    });
    try {
      const client = await cluster.client();
      expect(
        await client
          .with({ resources: { GPU: 1 } })
          .submit(square, 2)
          .result(),
      ).toBe(4);
      const hungry = client.with({ resources: { GPU: 2 } }).submit(square, 5);
      await expect(hungry.result()).rejects.toMatchObject({ code: 'ERR_NO_WORKER' });
    } finally {
      await cluster.close();
    }
  });
});

test('a module that starts a cluster is no module of tasks', async () => {
  const script = join(folder, 'all-in-one.mjs');
  writeFileSync(
    script,
    `import { defineTasks, LocalCluster } from 'yardmaster';
     const { one } = defineTasks(import.meta.url, { one: () => 1 });
     const cluster = await LocalCluster.start({ workers: 1 });
     const client = await cluster.client();
     console.log((await client.submit(one).error()).message);
     await cluster.close();`,
  );
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(
    new URL('../../..', import.meta.url).pathname,
    join(folder, 'node_modules/yardmaster'),
  );
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  expect(stdout).toContain('move the tasks into a separate module');
});

describe('a local cluster of processes', () => {
  test('shows what tasks print, and shapes workers as the configuration says', async () => {
    const printed: string[] = [];
    const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      printed.push(String(text));
      return true;
    });
    const config = { worker: { threads: 2, resources: { GPU: 3 }, memoryLimit: '100 MB' } };
    const cluster = await LocalCluster.start({ mode: 'processes', workers: 1, config });
    try {
      const client = await cluster.client();
      await client
        .with({ resources: { GPU: 3 } })
        .submit(say, 'hello from a task')
        .result();
      while (!printed.join('').includes('hello')) await new Promise(setImmediate);
      expect(printed.join('')).toBe('hello from a task\n');
      expect((await client.identity()).workers).toMatchObject([
        {
          ...{ threadCount: 2, resources: { GPU: 3 }, memoryLimitBytes: 100_000_000 },
          speed: expect.any(Number) as number,
        },
      ]);
    } finally {
      write.mockRestore();
      await cluster.close();
    }
  });

  test('replaces a worker that is killed in the middle of a graph, which completes', async () => {
    const lines: string[] = [];
    const log = memoryLog(lines);
    const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, log });
    const pids = [...cluster.pids];
    try {
      const client = await cluster.client();
      expect(new Set([...pids, process.pid]).size).toBe(3);
      const inputs = client.map(square, [1, 2, 3, 4, 5, 6]);
      const fatal = client.submit(killOnce, join(folder, 'killed'), 'survived');
      const rest = client.map(slowSquare, [30, 30, 30, 30], [1, 2, 3, 4]);
      expect(await fatal.result()).toBe('survived');
      expect(await client.gather(rest)).toEqual([1, 4, 9, 16]);
      // Results that died with it were computed again.
      expect(await client.submit(add, inputs).result()).toBe(91);
      while (cluster.scheduler.cluster.workers.size < 2) await pause();
      expect(cluster.workerCount).toBe(2);
      expect(pids.filter(isAlive)).toHaveLength(1);
      const names = [...cluster.scheduler.cluster.workers.values()].map(({ name }) => name);
      expect(names.sort()).toEqual(['worker-0', 'worker-1']);
      expect(lines).toContainEqual(
        expect.stringMatching(
          /^warn the process \d+ of worker "worker-\d" was killed by SIGKILL; another one starts in 0.1 s$/,
        ),
      );
      const ids = await client.gather(
        [...cluster.scheduler.cluster.workers.keys()].map((address) =>
          client.with({ workers: [address], pure: false }).submit(processId),
        ),
      );
      expect(ids.sort()).toEqual([...cluster.pids].sort());
      expect(await client.command('events', { topic: 'all' })).toContainEqual(
        expect.objectContaining({
          message: expect.objectContaining({
            action: 'worker-restarted',
            signal: 'SIGKILL',
            restartCount: 1,
          }) as object,
        }),
      );
      pids.push(...cluster.pids);
    } finally {
      await cluster.close();
    }
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test('restarts a worker on request, under its name', async () => {
    const cluster = await LocalCluster.start({ mode: 'processes', workers: 1 });
    try {
      const client = await cluster.client();
      const before = cluster.pids[0];
      const kept = client.submit(square, 8);
      await kept.settled();
      await expect(client.restartWorkers(['nobody'])).rejects.toMatchObject({
        code: 'ERR_NO_WORKER',
      });
      expect(await client.restartWorkers(['nobody'], { errors: 'return' })).toEqual({
        restarted: [],
        kept: [],
        missing: [],
        unknown: ['nobody'],
      });
      await expect(client.restartWorkers([], { timeoutMs: 1 })).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
        message: expect.stringContaining('1 of 1 worker did not come back') as string,
      });
      await expect.poll(() => cluster.pids[0] !== before).toBe(true);
      await client.submit(square, 2).result();
      const { restarted, missing } = await client.restartWorkers(['127.0.0.1']);
      expect([restarted.map(({ name }) => name), missing]).toEqual([['worker-0'], []]);
      // It was only there, and is computed again.
      expect(await client.submit(add, [kept, 1]).result()).toBe(65);
      expect(cluster.pids).toHaveLength(1);
      expect(cluster.pids[0]).not.toBe(before);
    } finally {
      await cluster.close();
    }
  });

  test('leaves alone what has no nanny', async () => {
    const cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
    try {
      const client = await cluster.client();
      const { restarted, kept } = await client.restartWorkers(['worker-0']);
      expect([restarted, kept]).toEqual([[], [expect.objectContaining({ name: 'worker-0' })]]);
      expect(await client.submit(square, 3).result()).toBe(9);
    } finally {
      await cluster.close();
    }
  });

  test('waits without workers, and fails the tasks when it is configured to', async () => {
    const config = { scheduler: { noWorkersTimeout: '600ms' } };
    const cluster = await LocalCluster.start({
      mode: 'processes',
      workers: 1,
      config,
      nanny: false,
    });
    try {
      const client = await cluster.client();
      const running = client.submit(slowSquare, 60_000, 2);
      while (cluster.scheduler.cluster.totalThreads === 0 || !isProcessing(cluster)) {
        await pause();
      }
      const [pid] = cluster.pids;
      process.kill(pid!, 'SIGKILL');
      await expect(running.result()).rejects.toMatchObject({ code: 'ERR_NO_WORKER' });
      expect(cluster.workerCount).toBe(0);
    } finally {
      await cluster.close();
    }
  });

  test('says why a worker did not come up', async () => {
    const before = process.env['NODE_OPTIONS'];
    process.env['NODE_OPTIONS'] = '--no-such-option';
    try {
      await expect(LocalCluster.start({ mode: 'processes', workers: 1 })).rejects.toMatchObject({
        code: 'ERR_NO_WORKER',
        message: expect.stringContaining('--no-such-option') as string,
      });
    } finally {
      if (before === undefined) delete process.env['NODE_OPTIONS'];
      else process.env['NODE_OPTIONS'] = before;
    }
  });
});

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

/** Keeps what is logged from warnings up. */
function memoryLog(lines: string[]): Logger {
  const keep =
    (level: string) =>
    (_fields: object, message?: string): void =>
      void lines.push(`${level} ${message ?? ''}`);
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: keep('warn'),
    error: keep('error'),
  };
}

function isProcessing(cluster: LocalCluster): boolean {
  return [...cluster.scheduler.cluster.workers.values()].some(
    ({ processing }) => processing.size > 0,
  );
}
