import { expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { Channel, PROTOCOL } from '../../../core/api/index.ts';
import { KeptChannels, openChannel } from '../../../core/shared/channels.ts';

const ADDRESS = 'inmemory://worker:1';
const nothing = (): void => undefined;

class Network {
  readonly clock = new VirtualClock();
  readonly transport = new InMemoryTransport(this.clock);
  readonly accepted: Channel[] = [];
  readonly channels = new KeptChannels('this side', (address, handlers) => {
    const { clock, transport } = this;
    return openChannel({ transport, address, role: 'peer', clock, timeoutMs: 1000 }, handlers);
  });

  async serve(protocol = PROTOCOL): Promise<void> {
    await this.transport.listen(ADDRESS, (connection) => {
      const channel = new Channel(connection, this.clock, {
        onMessage: nothing,
        onRequest: (method) =>
          method === 'hello' ? { protocol, version: '0', serverId: 's' } : new Promise(nothing),
        onClose: nothing,
      });
      this.accepted.push(channel);
      return channel;
    });
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await this.clock.advanceAsync(0);
  }

  async open(): Promise<Channel> {
    const opening = this.channels.to(ADDRESS);
    opening.catch(nothing); // Looked at by the caller.
    await this.settle();
    return opening;
  }
}

it('a connection is opened once, and opened again after the peer has closed it', async () => {
  const network = new Network();
  await network.serve();
  const [first, same] = [network.open(), network.open()];
  expect(await first).toBe(await same);
  expect(network.channels.count).toBe(1);

  network.accepted[0]?.abort(new Error('the peer leaves'));
  await network.settle();
  expect(network.channels.count).toBe(0);
  expect(await network.open()).not.toBe(await first);
  expect(network.accepted).toHaveLength(2);
});

it('a peer that answers with another protocol is refused, and its connection is not kept', async () => {
  const network = new Network();
  await network.serve('yardmaster/9');
  await expect(network.open()).rejects.toMatchObject({
    code: 'ERR_PROTOCOL',
    data: { theirs: 'yardmaster/9', ours: PROTOCOL },
  });
  await network.settle();
  expect(network.channels.count).toBe(0);
  expect(network.accepted[0]?.isClosed).toBe(true);
});

it('requests to a dropped worker fail at once with the reason', async () => {
  const network = new Network();
  await network.serve();
  const answer = (await network.open()).request('anything');
  network.channels.drop(ADDRESS, 'the worker left');
  answer.catch(nothing); // Looked at below.
  await network.settle();
  await expect(answer).rejects.toMatchObject({
    code: 'ERR_CLOSED',
    cause: { message: `the connection to ${ADDRESS} ended: the worker left` },
  });
});

it('a side that is closed opens no connection', async () => {
  for (const end of ['abort', 'close'] as const) {
    const network = new Network();
    await network.serve();
    const channel = await network.open();
    const ended = network.channels[end]();
    await network.settle();
    await ended;
    expect(channel.isClosed).toBe(true);
    await expect(network.open()).rejects.toThrow('this side is closed');
  }
});
