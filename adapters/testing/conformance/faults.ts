import assert from 'node:assert/strict';

import { YardmasterError } from '../../../core/api/index.ts';
import { type Bench, type Clauses, DEAF, Unproven } from './bench.ts';

const MIB = 1024 * 1024;

/** What happens when the peer, the network or a message is not as it should be. Each needs a part of the harness. */
export const FAULTS_CLAUSES: Clauses = {
  async 'a message larger than a frame may be is refused with ERR_FRAME, and nothing of that call is sent'(
    bench,
  ) {
    const { small } = bench.harness;
    if (small === undefined) throw new Unproven('small');
    const [client, server] = await bench.pair(small.transport);
    const bytes = new Uint8Array(small.frameBytesMax + 1);
    assert.throws(
      () => client.connection.send({ op: 'good' }, { op: 'large', bytes }),
      (error: unknown) => YardmasterError.is(error, 'ERR_FRAME'),
      'send did not throw ERR_FRAME',
    );
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },

  async 'a frame larger than the receiver takes ends the connection with ERR_FRAME there, and no other'(
    bench,
  ) {
    const { small, transport } = bench.harness;
    if (small?.isReachable !== true) throw new Unproven('small.isReachable');
    const listener = await bench.listen(bench.accepted, small.transport);
    const client = await bench.connect(listener, transport);
    const other = await bench.connect(listener, transport);
    await bench.until(() => bench.accepted.length === 2);
    client.connection.send({ op: 'large', bytes: new Uint8Array(small.frameBytesMax * 4) });
    await bench.until(() => client.isOver && bench.accepted.some((end) => end.isOver));
    const reported = bench.accepted.flatMap((end) => end.closes);
    assert.equal(reported.length, 1);
    assert(YardmasterError.is(reported[0], 'ERR_FRAME'), `the receiver got ${String(reported[0])}`);
    assert(client.closes[0] instanceof Error, 'the sender received an orderly close');
    assert.deepEqual([other.isOver, client.messages], [false, []]);
  },

  async 'connecting to a peer that never answers fails with ERR_CONNECT within the time'(bench) {
    const { transport, silentAddress } = bench.harness;
    if (silentAddress === undefined) throw new Unproven('silentAddress');
    let isOpened = false;
    const open = (): typeof DEAF => {
      isOpened = true;
      return DEAF;
    };
    await assert.rejects(
      bench.settled(transport.connect(silentAddress, open, { timeoutMs: 100 })),
      (error: unknown) => {
        assert(YardmasterError.is(error, 'ERR_CONNECT'), String(error));
        assert(error.message.includes(silentAddress), error.message);
        return true;
      },
    );
    assert.equal(isOpened, false);
  },

  async 'drained waits while the peer reads nothing, and resolves when it reads again'(bench) {
    const pair = await bench.proxiedPair();
    const { client, server, proxy } = pair;
    proxy.freeze();
    for (let count = 0; count < 32; count++) {
      client.connection.send({ bytes: new Uint8Array(MIB) });
    }
    let isDrained = false;
    const drained = client.connection.drained().then(() => {
      isDrained = true;
    });
    await bench.turns(20);
    assert.equal(isDrained, false, 'drained resolved although the peer reads nothing');
    assert(client.connection.bufferedBytes > MIB, 'nothing is buffered');
    proxy.thaw();
    await bench.settled(drained);
    await bench.until(() => server.messages.length === 32);
  },

  async 'a peer that stands still cannot hold a close for ever'(bench) {
    const pair = await bench.proxiedPair();
    const { client, proxy } = pair;
    proxy.freeze();
    client.connection.send({ op: 'unread', bytes: new Uint8Array(16 * MIB) });
    await bench.settled(client.connection.close());
    await bench.until(() => client.isOver);
    assert.equal(client.closes.length, 1);
  },

  async 'a connection that is cut is ERR_CLOSED on both sides, and others live on'(bench) {
    const pair = await bench.proxiedPair();
    const { client, server, proxy, listener } = pair;
    proxy.cut();
    await bench.until(() => client.isOver && server.isOver);
    for (const [error] of [client.closes, server.closes]) {
      assert(YardmasterError.is(error, 'ERR_CLOSED'), `reported ${String(error)}`);
    }
    await worksStill(bench, listener);
  },

  async 'a peer that breaks the protocol is ERR_PROTOCOL or ERR_FRAME, and others live on'(bench) {
    const pair = await bench.proxiedPair();
    const { client, server, proxy, listener } = pair;
    proxy.corrupt();
    await bench.until(() => client.isOver && server.isOver);
    for (const { closes, messages } of [client, server]) {
      const [error] = closes;
      const isProtocolError =
        YardmasterError.is(error, 'ERR_PROTOCOL') || YardmasterError.is(error, 'ERR_FRAME');
      // The side that sees it second may see the end of the other one first.
      assert(
        isProtocolError || YardmasterError.is(error, 'ERR_CLOSED'),
        `reported ${String(error)}`,
      );
      assert.deepEqual(messages, []);
    }
    const codes = [client, server].map(({ closes }) => (closes[0] as YardmasterError).code);
    assert(
      codes.some((code) => code !== 'ERR_CLOSED'),
      codes.join(),
    );
    await worksStill(bench, listener);
  },
};

async function worksStill(
  bench: Bench,
  listener: Awaited<ReturnType<Bench['listen']>>,
): Promise<void> {
  const before = bench.accepted.length;
  const client = await bench.connect(listener);
  await bench.until(() => bench.accepted.length > before);
  const server = bench.accepted[before];
  assert(server !== undefined);
  await bench.roundTrips(client, server);
}
