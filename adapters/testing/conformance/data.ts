import assert from 'node:assert/strict';

import { type WireMessage, YardmasterError } from '../../../core/api/index.ts';
import { type Clauses } from './bench.ts';

/** All sorts of values that have to arrive as they were sent. */
const VALUES: WireMessage = {
  op: 'values',
  text: 'größer, 東京, 🚂, \u0000, "quoted"\n',
  empty: '',
  long: 'x'.repeat(100_000),
  nothing: null,
  yes: true,
  no: false,
  integers: [0, 1, -1, 127, 128, -32, -33, 255, 65_536, 2 ** 31, -(2 ** 31), 2 ** 32, -(2 ** 32)],
  largest: [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53, -(2 ** 53)],
  fractions: [0.1, -1e-300, 1e300, Number.MAX_VALUE, Infinity, -Infinity, NaN],
  bytes: new Uint8Array([0, 1, 254, 255]),
  noBytes: new Uint8Array(0),
  nested: { list: [[], [[{}]], { deep: { bytes: new Uint8Array([7]) } }] },
  'a key with spaces': 1,
  '': 'the empty name',
};

/** What arrives of what was sent. */
export const DATA_CLAUSES: Clauses = {
  async 'all kinds of plain data arrive as they were sent'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send(VALUES);
    await bench.until(() => server.messages.length === 1);
    assert.deepStrictEqual(server.messages[0], VALUES);
  },

  async 'undefined fields are dropped, and a Buffer arrives as Uint8Array'(bench) {
    const [client, server] = await bench.pair();
    const list = [undefined, -0];
    client.connection.send({ kept: 1, dropped: undefined, list, bytes: Buffer.from('ab') });
    await bench.until(() => server.messages.length === 1);
    assert.deepStrictEqual(server.messages[0], {
      kept: 1,
      list: [null, 0],
      bytes: new Uint8Array([97, 98]),
    });
  },

  async 'messages are copied: changing one after it was sent changes nothing'(bench) {
    const [client, server] = await bench.pair();
    const message = { op: 'before', list: [1, 2], bytes: new Uint8Array([1, 2]) };
    client.connection.send(message);
    message.op = 'after';
    message.list.push(3);
    message.bytes.fill(9);
    await bench.until(() => server.messages.length === 1);
    const [received] = server.messages;
    assert.deepStrictEqual(received, { op: 'before', list: [1, 2], bytes: new Uint8Array([1, 2]) });
    received['list'].push(4);
    assert.deepEqual(message.list, [1, 2, 3]);
  },

  async 'received bytes stay as they are when more arrives'(bench) {
    const [client, server] = await bench.pair();
    client.connection.send({ bytes: new Uint8Array(1000).fill(1) });
    await bench.until(() => server.messages.length === 1);
    for (let fill = 2; fill < 20; fill++) {
      client.connection.send({ bytes: new Uint8Array(1000).fill(fill) });
      await bench.until(() => server.messages.length === fill);
    }
    const fills = server.messages.map((message) => new Set(message['bytes'] as Uint8Array));
    assert.deepEqual(
      fills,
      Array.from({ length: 19 }, (_, index) => new Set([index + 1])),
    );
  },

  async 'what cannot travel is refused at once, naming where it is, and nothing of that call is sent'(
    bench,
  ) {
    const [client, server] = await bench.pair();
    const refused: readonly (readonly [unknown, string])[] = [
      [() => undefined, 'tasks[1].value'],
      [10n, 'tasks[1].value'],
      [Symbol('s'), 'tasks[1].value'],
      [new Map(), 'tasks[1].value'],
      [new Date(0), 'tasks[1].value'],
      [new Float64Array(2), 'tasks[1].value'],
      [2 ** 53 + 2, 'tasks[1].value'],
      ['half of a pair: \ud83d', 'tasks[1].value'],
      [new Error('an instance of a class'), 'tasks[1].value'],
      [JSON.parse('{ "__proto__": 1 }'), 'tasks[1].value.__proto__'],
      [{ 'odd key': [new Set()] }, 'tasks[1].value["odd key"][0]'],
    ];
    for (const [value, path] of refused) {
      assert.throws(
        () => {
          client.connection.send({ op: 'good' }, { tasks: [{}, { value }] });
        },
        (error: unknown) =>
          YardmasterError.is(error, 'ERR_NOT_SERIALISABLE') && error.data['path'] === path,
        `${typeof value} at ${path}`,
      );
    }
    await bench.roundTrips(client, server);
    assert.deepEqual(server.messages, [{ op: 'ping' }, { op: 'ping' }]);
  },
};
