import { expect, it } from 'vitest';
import { MemoryStore } from '../../../adapters/stores/index.ts';
import type { Clock, ExecutionResult, Executor } from '../../../core/api/index.ts';
import { createWorker, type HostedWorker } from '../../../core/worker-host/create-worker.ts';
import { settle, TestHost } from '../../kit/test-host.ts';

const TASK_MS = 500;

/** Runs take half a second of the clock. */
class SlowExecutor implements Executor {
  readonly ran: string[] = [];

  constructor(
    readonly threadCount: number,
    private readonly clock: Clock,
  ) {}

  run({ key }: { readonly key: string }): Promise<ExecutionResult> {
    this.ran.push(key);
    const startMs = this.clock.nowMs();
    return new Promise((resolve) => {
      this.clock.setTimer(TASK_MS, () => {
        const value = new Uint8Array([1]);
        const stopMs = this.clock.nowMs();
        resolve({ kind: 'success', value, type: 'bytes', startMs, stopMs });
      });
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function startWorker(host: TestHost, name: string): Promise<[HostedWorker, SlowExecutor]> {
  const executor = new SlowExecutor(1, host.clock);
  const starting = createWorker({
    schedulerAddress: host.address,
    listenAddress: `inmemory://${name}:0`,
    name,
    transports: new Map([['inmemory', host.transport]]),
    executor,
    store: new MemoryStore(),
    clock: host.clock,
    log: host.log,
    validate: true,
  });
  await settle(host.clock);
  return [await starting, executor];
}

it.each(['eager', 'calm'] as const)(
  'a worker that joins late gets work (%s), and all is computed once',
  async (mode) => {
    const queuing = { use: 'root-ish', options: { workerSaturation: 'inf' } };
    const config = { scheduler: { validate: true, policies: { queuing }, workStealing: { mode } } };
    const host = await TestHost.start({ config });
    const [first, ranFirst] = await startWorker(host, 'first');
    const client = await host.client();
    const keys = Array.from({ length: 20 }, (_, index) => `x-${index}`);
    const tasks = keys.map((key) => ({ key, dependencies: [], runSpec: key }));
    await client.send({ op: 'update-graph', tasks, keys });
    await host.clock.advanceAsync(600);
    const [second, ranSecond] = await startWorker(host, 'second');
    const startedMs = host.clock.nowMs();
    const isDone = (): boolean =>
      keys.every((key) => client.received.some((m) => m['key'] === key));
    await host.clock.runUntil(isDone);
    // Alone the first one would have taken nine and a half seconds more.
    expect(host.clock.nowMs() - startedMs).toBeLessThan(7_000);
    expect(ranSecond.ran.length).toBeGreaterThan(6);
    expect([...ranFirst.ran, ...ranSecond.ran].sort()).toEqual(keys.toSorted());
    // The urgent ones stayed where they were.
    expect(ranFirst.ran.slice(0, 3)).toEqual(['x-0', 'x-1', 'x-2']);
    const closing = [first.close(), second.close()];
    await settle(host.clock);
    await Promise.all(closing);
    await host.close();
  },
);
