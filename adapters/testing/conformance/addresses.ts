import assert from 'node:assert/strict';

import { YardmasterError } from '../../../core/api/index.ts';
import { type Clauses, DEAF, type End } from './bench.ts';

/** Listening and connecting. */
export const ADDRESSES_CLAUSES: Clauses = {
  async 'connecting to an address without a listener fails with ERR_CONNECT that names the address'(
    bench,
  ) {
    const { transport, vacantAddress } = bench.harness;
    let isOpened = false;
    const attempt = transport.connect(vacantAddress, () => {
      isOpened = true;
      return DEAF;
    });
    await assert.rejects(bench.settled(attempt), (error: unknown) => {
      assert(YardmasterError.is(error, 'ERR_CONNECT'), String(error));
      assert(error.message.includes(vacantAddress), error.message);
      return true;
    });
    assert.equal(isOpened, false);
  },

  async 'an address that makes no sense is ERR_CONNECT'(bench) {
    const { transport } = bench.harness;
    const isConnectError = (error: unknown): boolean => YardmasterError.is(error, 'ERR_CONNECT');
    const address = `${transport.scheme}://a:b:c`;
    await assert.rejects(bench.settled(transport.connect(address, () => DEAF)), isConnectError);
    await assert.rejects(bench.settled(transport.listen(address, () => DEAF)), isConnectError);
  },

  async 'an address can be listened on once at a time'(bench) {
    const listener = await bench.listen();
    await assert.rejects(
      bench.settled(bench.harness.transport.listen(listener.address, () => DEAF)),
      (error: unknown) => YardmasterError.is(error, 'ERR_CONNECT'),
    );
    await bench.settled(listener.close());
    const again = await bench.settled(bench.harness.transport.listen(listener.address, () => DEAF));
    assert.equal(again.address, listener.address);
    await bench.settled(again.close());
  },

  async 'two listeners have two addresses and their own connections'(bench) {
    const first: End[] = [];
    const second: End[] = [];
    const one = await bench.listen(first);
    const two = await bench.listen(second);
    assert.notEqual(one.address, two.address);
    const client = await bench.connect(two);
    client.connection.send({ to: 'two' });
    await bench.until(() => second[0]?.messages.length === 1);
    assert.equal(first.length, 0);
  },

  async '50 connections of one listener do not mix'(bench) {
    const listener = await bench.listen();
    const clients: End[] = [];
    for (let number = 0; number < 50; number++) clients.push(await bench.connect(listener));
    clients.forEach(({ connection }, number) => {
      for (let count = 0; count < 20; count++) connection.send({ number, count });
    });
    await bench.until(() => bench.accepted.every((end) => end.messages.length === 20));
    assert.equal(bench.accepted.length, 50);
    const numbers = bench.accepted.map((end) => {
      assert.deepEqual(
        end.messages.map((message) => message['count']),
        Array.from({ length: 20 }, (_, count) => count),
      );
      assert.equal(new Set(end.messages.map((message) => message['number'])).size, 1);
      return end.messages[0]?.['number'] as number;
    });
    assert.equal(new Set(numbers).size, 50);
  },

  async 'a closed listener accepts no connections, and its open ones stay'(bench) {
    const listener = await bench.listen();
    const client = await bench.connect(listener);
    await bench.until(() => bench.accepted.length === 1);
    const [server] = bench.accepted;
    assert(server !== undefined);
    await bench.settled(listener.close());
    await bench.settled(listener.close());
    await assert.rejects(bench.connect(listener), (error: unknown) =>
      YardmasterError.is(error, 'ERR_CONNECT'),
    );
    await bench.roundTrips(client, server);
    assert.equal(client.isOver || server.isOver, false);
  },
};
