import { inBackground } from '../../../core/shared/background.ts';
import assert from 'node:assert/strict';
import type { Connection, WireMessage } from '../../../core/api/index.ts';

import { type Clauses, DEAF } from './bench.ts';

/** How messages get from one end to the other. */
export const DELIVERY_CLAUSES: Clauses = {
  async 'messages reach the other side, both ways'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => connection.send({ op: 'hello', from: 'client' }));
    server.act((connection) => connection.send({ op: 'hello', from: 'server' }));
    await bench.until(() => client.messages.length === 1 && server.messages.length === 1);
    assert.deepEqual(server.messages, [{ op: 'hello', from: 'client' }]);
    assert.deepEqual(client.messages, [{ op: 'hello', from: 'server' }]);
  },

  async 'the scheme is that of its addresses'(bench) {
    const { transport, listenAddress } = bench.harness;
    const listener = await bench.listen();
    assert(listenAddress.startsWith(`${transport.scheme}://`), listenAddress);
    assert(listener.address.startsWith(`${transport.scheme}://`), listener.address);
    assert.notEqual(listener.address, '');
  },

  async 'the end that connects knows the address of its peer'(bench) {
    const listener = await bench.listen();
    const client = await bench.connect(listener);
    assert.equal(client.connection.peerAddress, listener.address);
  },

  async 'accept is called before any message of the connection'(bench) {
    const listener = await bench.listen();
    const events: string[] = [];
    const inner = await bench.settled(
      bench.harness.transport.listen(bench.harness.listenAddress, () => {
        events.push('accept');
        return {
          onMessages: () => events.push('messages'),
          onClose: () => events.push('close'),
        };
      }),
    );
    const connection = await bench.settled(
      bench.harness.transport.connect(inner.address, (opened) => {
        opened.send({ op: 'from within open' });
        return DEAF;
      }),
    );
    await bench.until(() => events.includes('messages'));
    await bench.settled(connection.close());
    await bench.until(() => events.includes('close'));
    assert.deepEqual(events, ['accept', 'messages', 'close']);
    await bench.settled(inner.close());
    await bench.settled(listener.close());
  },

  async 'what accept sends at once reaches the end that connects'(bench) {
    const { transport, listenAddress } = bench.harness;
    const listener = await bench.settled(
      transport.listen(listenAddress, (connection) => {
        connection.send({ op: 'welcome' });
        return DEAF;
      }),
    );
    const client = await bench.connect(listener);
    await bench.until(() => client.messages.length === 1);
    assert.deepEqual(client.messages, [{ op: 'welcome' }]);
    await bench.settled(listener.close());
  },

  async '10 000 small messages arrive in order'(bench) {
    const [client, server] = await bench.pair();
    for (let number = 0; number < 10_000; number++) {
      client.connection.send({ op: 'count', number });
      if (number % 1000 === 0) await bench.until(() => true);
    }
    await bench.until(() => server.messages.length === 10_000);
    assert.deepEqual(
      server.messages.map((message) => message['number']),
      Array.from({ length: 10_000 }, (_, number) => number),
    );
  },

  async 'messages sent in one turn arrive as one batch'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      connection.send({ n: 1 }, { n: 2 });
      connection.send({ n: 3 });
    });
    await bench.until(() => server.messages.length === 3);
    assert.deepEqual(server.batches, [[{ n: 1 }, { n: 2 }, { n: 3 }]]);
  },

  async 'what may be sent later keeps its place, and comes when nothing else is sent'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      sendLater(connection, { n: 1 });
      connection.send({ n: 2 });
      sendLater(connection, { n: 3 });
    });
    await bench.until(() => server.messages.length === 3);
    client.act((connection) => sendLater(connection, { n: 4 }));
    await bench.until(() => server.messages.length === 4);
    assert.deepEqual(server.messages, [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]);
  },

  async 'what may be sent later is sent before a close'(bench) {
    const [client, server] = await bench.pair();
    client.act((connection) => {
      sendLater(connection, { n: 1 });
      inBackground(connection.close(), (error) => connection.abort(error));
    });
    await bench.until(() => server.closes.length === 1);
    assert.deepEqual(server.messages, [{ n: 1 }]);
  },

  async 'sending nothing sends nothing'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send();
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },

  async 'a message of 32 MiB passes intact'(bench) {
    const [client, server] = await bench.pair();
    const bytes = new Uint8Array(32 * 1024 * 1024);
    for (let index = 0; index < bytes.length; index += 4093) bytes[index] = index & 0xff;
    client.connection.send({ op: 'before' }, { op: 'large', bytes }, { op: 'after' });
    await bench.until(() => server.messages.length === 3);
    assert.deepEqual(
      server.messages.map((message) => message['op']),
      ['before', 'large', 'after'],
    );
    const received = server.messages[1]?.['bytes'] as Uint8Array;
    assert.equal(Buffer.compare(received, bytes), 0);
  },

  async 'buffered bytes are counted, and drained resolves when they have left'(bench) {
    const [client, server] = await bench.pair();
    await bench.until(() => client.connection.bufferedBytes === 0);
    const bytes = new Uint8Array(1024 * 1024);
    for (let count = 0; count < 16; count++) client.connection.send({ bytes });
    assert(client.connection.bufferedBytes > 1024 * 1024, 'nothing is buffered');
    let isDrained = false;
    const drained = client.connection.drained().then(() => {
      isDrained = true;
    });
    // Nothing leaves before the turn ends, so it cannot have resolved by then.
    for (let jobs = 0; jobs < 50; jobs++) await Promise.resolve();
    assert.equal(isDrained, false, 'drained resolved before anything had left');
    const bufferedBytes = client.connection.bufferedBytes;
    await bench.settled(drained);
    assert(
      client.connection.bufferedBytes < bufferedBytes,
      'drained resolved, and nothing has left',
    );
    await bench.until(() => server.messages.length === 16);
    await bench.until(() => client.connection.bufferedBytes === 0);
    await bench.settled(client.connection.drained());
  },

  async 'drained resolves when the connection ends'(bench) {
    const [client] = await bench.pair();
    for (let count = 0; count < 16; count++) {
      client.connection.send({ bytes: new Uint8Array(1024 * 1024) });
    }
    const drained = client.connection.drained();
    client.connection.abort(new Error('enough'));
    await bench.settled(drained);
    await bench.settled(client.connection.drained());
  },
};

/** As a channel does it: a transport need not know the difference. */
function sendLater(connection: Connection, message: WireMessage): void {
  if (connection.sendLater === undefined) connection.send(message);
  else connection.sendLater(message);
}
