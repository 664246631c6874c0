/** Limits of the messages between a scheduler and its workers, as its clients meet them. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client, task } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import { bytes } from './tasks.ts';

const LIMIT = 64 * 1024;
const SIZE = 100_000;

const clock = new SystemClock();

/** A scheduler with one worker; messages between them are limited. */
async function limited(inMemory: InMemoryTransport): Promise<readonly [tcp: string, here: string]> {
  const transports = [new TcpTransport(clock, { frameBytesMax: LIMIT }), inMemory];
  const running = await startScheduler({ clock, transports }, 'tcp://127.0.0.1:0');
  onTestFinished(() => running.close());
  const worker = await startWorker(running.address, { executor: 'inline', clock });
  onTestFinished(() => worker.close());
  return [running.address, await running.scheduler.listen('inmemory://scheduler')];
}

describe('a value above the limit of the scheduler is an error of the call, though the client could send it', () => {
  const value = new Uint8Array(SIZE);
  const calls: readonly (readonly [string, (client: Client) => unknown])[] = [
    ['an argument', (client) => client.submit(bytes, value as unknown as number)],
    [
      'a task of a graph',
      (client) => client.compute({ x: task(bytes, value as unknown as number) }, 'x'),
    ],
    ['a scattered value', (client) => client.scatter([value])],
    ['an item of a queue', (client) => client.queue('q').put(value)],
  ];

  it.each(calls)('%s, in the process of the scheduler', async (_what, call) => {
    const inMemory = new InMemoryTransport(clock, { byReference: true });
    const [, here] = await limited(inMemory);
    const transports = [inMemory, new TcpTransport(clock)];
    const client = await Client.connect(here, { clock, transports });
    onTestFinished(() => client.close());
    await expect(Promise.resolve().then(() => call(client))).rejects.toMatchObject({
      code: 'ERR_FRAME',
      message: expect.stringMatching(/of 100\d{3} bytes .* leaves 64\d{3} bytes/) as string,
    });
    expect(await client.submit(bytes, 7).result()).toHaveLength(7);
  });

  it('an argument, over TCP with a larger limit', async () => {
    const [tcp] = await limited(new InMemoryTransport(clock));
    const transports = [new TcpTransport(clock)];
    const client = await Client.connect(tcp, { clock, transports });
    onTestFinished(() => client.close());
    expect(() => client.submit(bytes, value as unknown as number)).toThrow(
      expect.objectContaining({ code: 'ERR_FRAME' }) as Error,
    );
    expect(await client.submit(bytes, 7).result()).toHaveLength(7);
  });
});
