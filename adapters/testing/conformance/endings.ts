import assert from 'node:assert/strict';

import { YardmasterError } from '../../../core/api/index.ts';
import { type Clauses } from './bench.ts';

/** How connections end. */
export const ENDINGS_CLAUSES: Clauses = {
  async 'close sends what is queued, then both sides see a close in good order'(bench) {
    const [client, server] = await bench.pair();
    const bytes = new Uint8Array(1024 * 1024);
    client.connection.send({ n: 1, bytes }, { n: 2, bytes }, { n: 3 });
    let closed: Promise<void> | undefined;
    client.act((connection) => {
      closed = connection.close();
    });
    assert(closed !== undefined);
    await bench.settled(closed);
    assert(client.isOver, 'close resolved before the connection was over');
    await bench.until(() => server.isOver);
    assert.deepEqual(
      server.messages.map((message) => message['n']),
      [1, 2, 3],
    );
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
  },

  async 'the side that is closed upon sends what it had queued'(bench) {
    const [client, server] = await bench.pair();
    server.connection.send({ op: 'last words', bytes: new Uint8Array(300_000) });
    await bench.settled(client.connection.close());
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(
      client.messages.map((message) => message['op']),
      ['last words'],
    );
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
  },

  async 'both sides may close at the same time, and twice'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send({ from: 'client' });
    server.connection.send({ from: 'server' });
    const closes = [client, server].flatMap(({ connection }) => [
      connection.close(),
      connection.close(),
    ]);
    await bench.settled(Promise.all(closes));
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(
      [client.messages, server.messages],
      [[{ from: 'server' }], [{ from: 'client' }]],
    );
    assert.deepEqual([client.closes, server.closes], [[undefined], [undefined]]);
    await bench.settled(client.connection.close());
  },

  async 'send after close does nothing'(bench) {
    const [client, server] = await bench.pair();
    const closed = client.connection.close();
    client.connection.send({ op: 'too late' });
    await bench.settled(closed);
    client.connection.send({ op: 'much too late' });
    await bench.until(() => server.isOver);
    server.connection.send({ op: 'to a closed connection' });
    assert.deepEqual([server.messages, client.messages], [[], []]);
  },

  async 'abort drops what is queued and reports its reason to its owner'(bench) {
    const [client, server] = await bench.pair();
    const reason = new Error('the worker is not wanted any more');
    client.act((connection) => {
      connection.send({ op: 'never arrives' });
      connection.abort(reason);
      connection.send({ op: 'neither' });
    });
    await bench.until(() => client.isOver && server.isOver);
    assert.deepEqual(server.messages, []);
    assert.equal(client.closes[0], reason);
    const [error] = server.closes;
    assert(error instanceof Error, 'the other side received an orderly close');
    assert(YardmasterError.is(error, 'ERR_CLOSED'), `the other side got ${error.message}`);
  },

  async 'abort after close still ends it once'(bench) {
    const [client, server] = await bench.pair();
    const closed = client.connection.close();
    client.connection.abort(new Error('too slow'));
    client.connection.abort(new Error('again'));
    await bench.settled(closed);
    await bench.until(() => client.isOver && server.isOver);
    assert.equal(client.closes.length, 1);
    client.connection.abort(new Error('after the end'));
  },

  async 'send never throws on account of the peer; its end arrives once, through onClose'(bench) {
    const [client, server] = await bench.pair();
    server.connection.abort(new Error('gone'));
    for (let count = 0; count < 50; count++) {
      client.connection.send({ bytes: new Uint8Array(100_000) });
      if (count % 10 === 0) await bench.until(() => true);
    }
    await bench.until(() => client.isOver);
    client.connection.send({ op: 'after the end' });
    assert.equal(client.closes.length, 1);
    assert(client.closes[0] instanceof Error);
  },

  async 'nothing is delivered after an abort from within onMessages'(bench) {
    const { transport, listenAddress } = bench.harness;
    const events: string[] = [];
    const listener = await bench.settled(
      transport.listen(listenAddress, (connection) => ({
        onMessages: () => {
          events.push('messages');
          connection.abort(new Error('stop'));
        },
        onClose: (error) => events.push(`close: ${String(error?.message)}`),
      })),
    );
    const client = await bench.connect(listener);
    for (let count = 0; count < 20; count++) {
      client.connection.send({ count, bytes: new Uint8Array(200_000) });
    }
    await bench.until(() => client.isOver && events.length >= 2);
    assert.deepEqual(events, ['messages', 'close: stop']);
    await bench.settled(listener.close());
  },

  async 'a handler that throws ends its own connection with that error, and no other'(bench) {
    const { transport, listenAddress } = bench.harness;
    const errors: (Error | undefined)[] = [];
    const thrown = new Error('field missing');
    const listener = await bench.settled(
      transport.listen(listenAddress, () => ({
        onMessages: () => {
          throw thrown;
        },
        onClose: (error) => errors.push(error),
      })),
    );
    const bad = await bench.connect(listener);
    const other = await bench.connect(listener);
    bad.connection.send({ op: 'bad' });
    await bench.until(() => bad.isOver && errors.length > 0);
    assert.deepEqual(errors, [thrown]);
    assert.equal(other.isOver, false);
    await bench.settled(listener.close());
  },
};
