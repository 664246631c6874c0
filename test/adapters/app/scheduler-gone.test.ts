/** Over real sockets and processes. In virtual time: test/adapters/client/coming-back, test/core/worker-host/coming-back. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client, type Reconnected } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { tcp } from '../../../adapters/transports/tcp/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { processId, rescheduleOnce, slowSquare, square } from '../cli/fixtures/tasks.js';
import { BreakableTransport } from '../../kit/breakable-transport.ts';
import { useLive } from '../../kit/live.ts';
import { waiting } from '../executors/fixtures/waiting-tasks.mjs';

const { folder, runs, stops } = useLive('gone');

async function returned(returns: readonly Reconnected[], count: number): Promise<void> {
  while (returns.length < count) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('a network that fails under worker and client costs no result that was there', async () => {
  const clock = new SystemClock();
  const log = new MemoryLog();
  const running = await startScheduler({ log }, 'tcp://127.0.0.1:0');
  stops.push(() => running.close());
  const network = new BreakableTransport(tcp.create({ clock }, {}));
  const worker = await startWorker(running.address, {
    threads: 1,
    onSchedulerLost: 'reconnect',
    transports: [network],
    log,
  });
  stops.push(() => worker.close());
  const returns: Reconnected[] = [];
  const client = await Client.connect(running.address, {
    onSchedulerLost: 'reconnect',
    onReconnected: (event) => returns.push(event),
    transports: [network],
  });
  stops.push(() => client.close());
  const marker = join(folder, 'runs');
  // It runs twice by itself; a third run would be one too many.
  const done = client.submit(rescheduleOnce, marker);
  await done.result();
  rmSync(marker);
  const running_ = client.submit(slowSquare, 300, 5);
  await new Promise((resolve) => setTimeout(resolve, 50));
  network.cut();
  expect(await running_.result()).toBe(25);
  await returned(returns, 1);
  expect(returns[0]?.lost).toEqual([]);
  expect(await client.gather([done], { direct: false })).toEqual(['placed anew']);
  expect(() => readFileSync(marker)).toThrow('ENOENT'); // It has not run again.
});

test('a scheduler that is killed and started again finds its worker, and its client what was lost', async () => {
  const config = join(folder, 'worker.yaml');
  writeFileSync(
    config,
    'worker: { onSchedulerLost: reconnect, reconnectTimeout: 20s, threads: 1 }',
  );
  const first = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  const address = await first.firstLine();
  await runs.yardmaster('worker', address, '--config', config, '--log-level', 'error').firstLine();
  const returns: Reconnected[] = [];
  const client = await Client.connect(address, {
    onSchedulerLost: 'reconnect',
    onReconnected: (event) => returns.push(event),
  });
  stops.push(() => client.close());
  const pid = client.submit(processId);
  const before = await pid.result();
  const open = client.submit(slowSquare, 60_000, 1);
  first.child.kill('SIGKILL');
  const { port } = new URL(address.replace('tcp:', 'http:'));
  await runs.yardmaster('scheduler', '--port', port).firstLine();
  await expect(open.result()).rejects.toMatchObject({ code: 'ERR_LOST' });
  expect(new Set(returns[0]?.lost)).toEqual(new Set([pid.key, open.key]));
  // The same process, which has dropped what it was running.
  expect(await client.submit(processId).result()).toBe(before);
  expect(await client.submit(square, 9).result()).toBe(81);
});

describe('a worker process inside native code ends within seconds', () => {
  const isAlive = (pid: number): boolean => {
    try {
      return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  };
  const end = async (pid: number): Promise<void> => {
    await expect.poll(() => isAlive(pid), { interval: 100 }).toBe(false);
  };
  const TASKS = new URL('../executors/fixtures/waiting-tasks.mjs', import.meta.url).href;

  test('when the program of its local cluster is killed', async () => {
    const flag = join(folder, 'in-program');
    const code = `
      import { LocalCluster } from 'yardmaster';
      const { waiting } = await import(${JSON.stringify(TASKS)});
      const cluster = await LocalCluster.start({ mode: 'processes', workers: 1, threads: 1 });
      const client = await cluster.client();
      const [worker] = (await client.identity()).workers;
      console.log(worker.pid);
      client.submit(waiting.blocks, 40, ${JSON.stringify(flag)}).result().catch(() => undefined);
      await new Promise(() => undefined);`;
    const program = runs.start(process.execPath, ['--input-type=module', '-e', code]);
    const pid = Number(await program.firstLine());
    await expect.poll(() => existsSync(flag)).toBe(true);
    expect(isAlive(pid)).toBe(true);
    await program.end('SIGKILL');
    await end(pid);
  });

  test('when its scheduler is killed, or it gets SIGTERM', async () => {
    for (const cause of ['scheduler', 'signal'] as const) {
      const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
      const address = await scheduler.firstLine();
      const worker = runs.yardmaster('worker', address, '--no-nanny', '--threads', '1');
      await worker.firstLine();
      const client = await Client.connect(address);
      const flag = join(folder, cause);
      client
        .submit(waiting.blocks, 40, flag)
        .result()
        .catch(() => undefined);
      await expect.poll(() => existsSync(flag)).toBe(true);
      if (cause === 'scheduler') await scheduler.end('SIGKILL');
      else worker.child.kill('SIGTERM');
      await end(worker.child.pid!);
      await client.close();
    }
  });
});
