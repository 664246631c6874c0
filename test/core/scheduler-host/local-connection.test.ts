import { describe, expect, it } from 'vitest';

import { transportConformance } from '../../../adapters/testing/index.ts';
import {
  Channel,
  type ChannelHandlers,
  type Connection,
  type ConnectionHandlers,
  definePlugin,
  type Listener,
  BRIDGE,
  type PluginContext,
  PROTOCOL,
  type Transport,
  YardmasterError,
} from '../../../core/api/index.ts';
import { LocalConnection } from '../../../core/scheduler-host/sessions.ts';
import { settle, TestHost } from '../../kit/test-host.ts';

/** Not claimed by a connection that copies nothing and has no bytes. */
const NOT_CLAIMED = [
  'undefined fields are dropped, and a Buffer arrives as Uint8Array',
  'messages are copied: changing one after it was sent changes nothing',
  'what cannot travel is refused at once, naming where it is, and nothing of that call is sent',
  'buffered bytes are counted, and drained resolves when they have left',
  '"local:0" is any free address: workers and clusters listen there',
];

/** Gives addresses to pairs, so that the clauses of transports can be asked of them. */
class PairTransport implements Transport {
  readonly scheme = 'pair';
  private readonly listeners = new Map<string, (connection: Connection) => ConnectionHandlers>();
  private count = 0;

  listen(
    address: string,
    accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listener> {
    const bound = address === 'pair://new' ? `pair://${this.count++}` : address;
    if (!/^pair:\/\/\w+$/.test(bound) || this.listeners.has(bound)) return refused(bound);
    this.listeners.set(bound, accept);
    const close = (): Promise<void> => {
      if (this.listeners.get(bound) === accept) this.listeners.delete(bound);
      return Promise.resolve();
    };
    return Promise.resolve({ address: bound, close });
  }

  connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
  ): Promise<Connection> {
    const accept = this.listeners.get(address);
    if (accept === undefined) return refused(address);
    const [here, there] = LocalConnection.pair(['pair://connecting', address]);
    there.attach(accept(there));
    here.attach(open(here));
    return Promise.resolve(here);
  }
}

function refused<T>(address: string): Promise<T> {
  return Promise.reject(new YardmasterError('ERR_CONNECT', `nobody can be at ${address}`));
}

transportConformance(
  'a connection within a process',
  () => ({
    transport: new PairTransport(),
    listenAddress: 'pair://new',
    vacantAddress: 'pair://nobody',
  }),
  {
    describe,
    it: (clause, body) => it.skipIf(NOT_CLAIMED.includes(clause))(clause, body),
  },
);

/** A plugin that hands its context out. */
async function contextOf(host: TestHost): Promise<PluginContext> {
  let context: PluginContext | undefined;
  const plugin = definePlugin({
    name: 'guest',
    apiVersion: 1,
    setup: (given) => {
      context = given;
    },
  });
  await host.scheduler.addPlugin(plugin);
  return context as PluginContext;
}

const NO_REQUESTS: ChannelHandlers['onRequest'] = (method) => {
  throw new Error(`nobody asks ${method} here`);
};

describe('a plugin that connects to its own scheduler', () => {
  it('is a client like any other, and its run specifications pass by reference', async () => {
    const host = await TestHost.start();
    const context = await contextOf(host);
    const received: unknown[] = [];
    let channel: Channel | undefined;
    context.get(BRIDGE).connect((connection) => {
      channel = new Channel(connection, context.clock, {
        onMessage: (message) => received.push(message),
        onRequest: NO_REQUESTS,
        onClose: () => undefined,
      });
      return channel;
    });
    const hello = channel?.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
    await settle(host.clock);
    expect(await hello).toMatchObject({ protocol: PROTOCOL });
    const registered = channel?.request('register-client', { client: 'inside' });
    await settle(host.clock);
    await registered;
    const runSpec = new Map([['anything', 10n]]);
    channel?.send({
      op: 'update-graph',
      tasks: [{ key: 'x', dependencies: [], runSpec }],
      keys: ['x'],
    });
    await settle(host.clock);
    expect(context.cluster.tasks.get('x')?.state).toBe('queued');
    expect((host.scheduler.cluster.tasks.get('x') as { runSpec?: unknown }).runSpec).toBe(runSpec);
    expect(received).toEqual([]);
    await host.scheduler.close();
  });

  it('loses its connections when it is removed, and its client with them', async () => {
    const host = await TestHost.start();
    const context = await contextOf(host);
    const ends: (Error | undefined)[] = [];
    let channel: Channel | undefined;
    context.get(BRIDGE).connect((connection) => {
      channel = new Channel(connection, context.clock, {
        onMessage: () => undefined,
        onRequest: NO_REQUESTS,
        onClose: (error) => ends.push(error),
      });
      return channel;
    });
    void channel?.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
    void channel?.request('register-client', { client: 'inside' });
    await settle(host.clock);
    expect(context.cluster.clients.has('inside')).toBe(true);
    await host.scheduler.removePlugin('guest');
    await settle(host.clock);
    expect(ends).toMatchObject([{ code: 'ERR_CLOSED' }]);
    expect(host.scheduler.cluster.clients.has('inside')).toBe(false);
    await host.scheduler.close();
  });

  it('can run commands in the name of a client', async () => {
    const host = await TestHost.start();
    const context = await contextOf(host);
    expect(context.run('processing')).toEqual([]);
    expect(() => context.run('no-such-command')).toThrow('no-such-command');
    await host.scheduler.close();
  });
});
