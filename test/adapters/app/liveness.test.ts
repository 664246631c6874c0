import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import {
  add,
  busy,
  processId,
  rescheduleOnce,
  secedeUntil,
  square,
} from '../cli/fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-live-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function exists(path: string): Promise<void> {
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 5));
}

test.each(['threads', 'processes'] as const)(
  'with %s a task that computes for longer than the time to live does not make its worker look dead',
  async (mode) => {
    // The kernel forgives the silence of ten heartbeats, which is five seconds here.
    // On a busy machine an innocent thread gets no turn for a second.
    const config = { scheduler: { workerTtl: '1s' }, worker: { stuckAfter: '3s' } };
    const cluster = await LocalCluster.start({ mode, workers: 1, config });
    try {
      const client = await cluster.client();
      const removed: unknown[] = [];
      cluster.scheduler.events.on('worker-removed', (worker) => removed.push(worker));
      const [before] = cluster.scheduler.cluster.workers.keys();
      const pid = await client.submit(processId).result();
      expect(await client.submit(busy, 6500).result()).toBe(6500);
      expect([...cluster.scheduler.cluster.workers.keys()]).toEqual([before]);
      expect(await client.with({ pure: false }).submit(processId).result()).toBe(pid);
      expect(removed).toEqual([]);
    } finally {
      await cluster.close();
    }
  },
);

test('a worker that is silent for its time to live is removed, its task runs elsewhere, and it is replaced', async () => {
  const config = { scheduler: { workerTtl: '1s' }, worker: { stuckAfter: 'inf' } };
  const log = new MemoryLog();
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, config, log });
  try {
    const client = await cluster.client();
    const marker = join(folder, 'silent');
    const stopped = await client.with({ pure: false }).submit(processId).result();
    const [victim] = [...cluster.scheduler.cluster.workers.values()].filter(
      ({ identity }) => identity.pid === stopped,
    );
    const only = client.with({ workers: [victim!.name], allowOtherWorkers: true });
    const task = only.submit(busy, 500, marker);
    await exists(marker);
    process.kill(stopped, 'SIGSTOP'); // As a machine that hangs: the connection stands, nothing comes.
    const startMs = performance.now();
    expect(await task.result()).toBe(500);
    expect(performance.now() - startMs).toBeGreaterThan(3000);
    const ttlEvents = (await client.getEvents('scheduler')).map(({ message }) => message);
    expect(ttlEvents).toContainEqual(
      expect.objectContaining({ action: 'worker-ttl-timed-out', worker: victim!.address }),
    );
    process.kill(stopped, 'SIGCONT');
    while (cluster.pids.includes(stopped) || cluster.scheduler.cluster.workers.size < 2) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect([...cluster.scheduler.cluster.workers.values()].map(({ name }) => name).sort()).toEqual([
      'worker-0',
      'worker-1',
    ]);
  } finally {
    await cluster.close();
  }
});

test.each(['threads', 'processes'] as const)(
  'with %s a cancelled task that ignores its signal soon loses its thread, and the next one runs',
  async (mode) => {
    const cluster = await LocalCluster.start({ mode, workers: 1 });
    try {
      const client = await cluster.client();
      const marker = join(folder, mode);
      const endless = client.submit(busy, 3_600_000, marker);
      await exists(marker);
      const startMs = performance.now();
      endless.cancel();
      expect(await client.submit(square, 7).result()).toBe(49);
      // Until its thread was ended, the task had it.
      const tookMs = performance.now() - startMs;
      expect([tookMs > 450, tookMs < 4500]).toEqual([true, true]);
    } finally {
      await cluster.close();
    }
  },
);

test.each(['inline', 'threads'] as const)(
  'with %s a task that secedes lets another one run on the same thread, and rejoins',
  async (mode) => {
    const config = { scheduler: { validate: true } };
    const cluster = await LocalCluster.start({ mode, workers: 1, threads: 1, config });
    try {
      const client = await cluster.client();
      const markers = ['a', 'b', 'c'].map((name) => join(folder, `${mode}-${name}`));
      const waiting = markers.map((marker, index) => client.submit(secedeUntil, marker, index));
      const [worker] = cluster.scheduler.cluster.workers.values();
      while (worker!.longRunning.size < 3) await new Promise((resolve) => setTimeout(resolve, 5));
      // They have no thread, so the only one is free for what they wait for.
      await client.gather(markers.map((marker) => client.submit(busy, 1, marker)));
      expect(await client.submit(add, waiting).result()).toBe(3);
      expect(await client.submit(square, 5).result()).toBe(25);
    } finally {
      await cluster.close();
    }
  },
);

test('a task that gives itself back is placed anew, which is no failure', async () => {
  const cluster = await LocalCluster.start({ workers: 1 });
  try {
    const client = await cluster.client();
    const marker = join(folder, 'rescheduled');
    expect(await client.submit(rescheduleOnce, marker).result()).toBe('placed anew');
  } finally {
    await cluster.close();
  }
});
