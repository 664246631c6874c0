import { expect, it, onTestFinished } from 'vitest';

import { SystemClock } from '../../../adapters/clocks/index.ts';
import { ThreadExecutor } from '../../../adapters/executors/threads/index.ts';
import { MemoryStore } from '../../../adapters/stores/index.ts';
import { deserialise, packArguments, type TaskFunction } from '../../../adapters/tasks/index.ts';
import { tcp } from '../../../adapters/transports/tcp/index.ts';
import { Channel, type Logger, PROTOCOL, type WireMessage } from '../../../core/api/index.ts';
import { createWorker, type HostedWorker } from '../../../core/worker-host/create-worker.ts';
import { tasks } from '../../adapters/fixtures/sample-tasks.mjs';
import { type Locations, locations } from '../worker/builders.ts';
import { Ref } from '../worker/hand-scheduler.ts';

const functions = tasks as unknown as Record<string, TaskFunction>;
const clock = new SystemClock();
const transport = tcp.create({ clock }, {});
const nothing = (): void => undefined;
const log: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** The scheduler's end: waits for reports. */
class Desk {
  readonly channels = new Map<string, Channel>();
  private readonly reports: WireMessage[] = [];
  private wake = nothing;

  async listen(): Promise<string> {
    const listener = await transport.listen('tcp://127.0.0.1:0', (connection) => {
      const channel: Channel = new Channel(connection, clock, {
        onMessage: (message) => {
          this.reports.push(message);
          this.wake();
        },
        onRequest: (method, { identity }) => {
          if (method === 'hello') return { protocol: PROTOCOL, version: 'x', serverId: 's' };
          this.channels.set((identity as { name: string }).name, channel);
          return { heartbeatIntervalMs: 60_000, nowMs: clock.nowMs() };
        },
        onClose: nothing,
      });
      return channel;
    });
    onTestFinished(() => listener.close());
    return listener.address;
  }

  async report(op: string, key: string): Promise<WireMessage> {
    for (;;) {
      const found = this.reports.find((report) => report['op'] === op && report['key'] === key);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  compute(
    worker: string,
    key: string,
    name: string,
    args: readonly unknown[],
    where: Locations = {},
  ): void {
    const { module, version } = functions[name]!;
    const packed = packArguments(args, (value) => (value instanceof Ref ? value.key : undefined));
    this.channels.get(worker)!.send({
      op: 'compute-task',
      key,
      runId: 1,
      priority: [0, 1, 0],
      runSpec: { module, name, version, args: packed.bytes },
      dependencies: locations(where),
      durationS: 1,
      stimulusId: key,
    });
  }
}

async function startWorker(schedulerAddress: string, name: string): Promise<HostedWorker> {
  const worker = await createWorker({
    schedulerAddress,
    listenAddress: 'tcp://127.0.0.1:0',
    name,
    transports: new Map([['tcp', transport]]),
    executor: new ThreadExecutor({ threadCount: 1, clock, killGraceMs: 5000 }),
    store: new MemoryStore(),
    clock,
    log,
    validate: true,
  });
  onTestFinished(() => worker.close());
  return worker;
}

it('workers with threads compute, fetch from each other over TCP, and survive a thread that dies', async () => {
  const desk = new Desk();
  const address = await desk.listen();
  const alice = await startWorker(address, 'alice');
  const bob = await startWorker(address, 'bob');

  desk.compute('alice', 'zeros', 'zeros', [3_000_000]);
  const made = await desk.report('task-finished', 'zeros');
  expect(made).toMatchObject({ type: 'Uint8Array' });
  expect(made['nbytes']).toBeGreaterThan(3_000_000);

  desk.compute('bob', 'copy', 'echo', [new Ref('zeros')], { zeros: [alice.address] });
  expect(await desk.report('task-finished', 'copy')).toMatchObject({ nbytes: made['nbytes'] });

  desk.compute('bob', 'crash', 'exit', [7]);
  const erred = await desk.report('task-erred', 'crash');
  expect(erred).toMatchObject({
    failure: { exception: { code: 'ERR_TASK', data: { exitCode: 7 } } },
  });

  desk.compute('bob', 'after', 'add', [1, 2]);
  await desk.report('task-finished', 'after');
  const opened: { channel?: Channel } = {};
  await transport.connect(bob.address, (connection) => {
    opened.channel = new Channel(connection, clock, {
      onMessage: nothing,
      onRequest: nothing,
      onClose: nothing,
    });
    return opened.channel;
  });
  const channel = opened.channel!;
  await channel.request('hello', { protocol: PROTOCOL, role: 'peer', version: 'x' });
  const reply = await channel.request<{ values: Uint8Array[] }>('get-data', {
    keys: ['after', 'copy'],
  });
  expect(deserialise(reply.values[0]!)).toBe(3);
  const copy = deserialise(reply.values[1]!) as Uint8Array;
  expect([copy.length, copy.every((byte) => byte === 0)]).toEqual([3_000_000, true]);
  await channel.close();
});
