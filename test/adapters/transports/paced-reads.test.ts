import { connect as connectSocket, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { tcp } from '../../../adapters/transports/tcp/index.ts';
import { PacedReads } from '../../../adapters/transports/tcp/connection.ts';
import type { Connection } from '../../../core/api/index.ts';
import { TurnBudget } from '../../../core/shared/turn.ts';
import { HandClock } from '../../kit/hand-clock.ts';

/** Time passes when the test says so; turns are those of the real event loop, and nothing takes too long. */
class LoopClock extends HandClock {
  override setTimer(delayMs: number, callback: () => void) {
    const handle = delayMs > 0 ? undefined : setImmediate(callback);
    return { cancel: () => clearImmediate(handle) };
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Both ends of a connection over loopback. */
async function pair(): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const there = connectSocket({ port: (server.address() as { port: number }).port });
  const [here] = (await once(server, 'connection')) as [Socket];
  for (const socket of [here, there]) socket.on('error', () => undefined);
  onTestFinished(() => {
    here.destroy();
    there.destroy();
    server.close();
  });
  return [here, there];
}

describe('what a socket brings', () => {
  it('is handed on at once while the turn has time', async () => {
    const [here, there] = await pair();
    const chunk = new Promise<string>((resolve) => {
      new PacedReads(here, new TurnBudget(new LoopClock()), (bytes) => resolve(bytes.toString()));
    });
    there.write('hello');
    expect(await chunk).toBe('hello');
  });

  it('waits while the turn is spent, and its peer comes to feel it', async () => {
    const [here, there] = await pair();
    const clock = new HandClock(); // Its turns end when the test says so.
    const budget = new TurnBudget(clock, 1);
    budget.admits();
    clock.pass(1);
    let nbytes = 0;
    new PacedReads(here, budget, (bytes) => (nbytes += bytes.length));
    const sent = 64 * 1024 * 1024;
    there.write(Buffer.alloc(sent));
    while (!here.isPaused()) await turn();
    for (let count = 0; count < 50; count++) await turn();
    expect(nbytes).toBe(0);
    expect(here.bytesRead).toBeLessThan(sent / 2);
    while (nbytes < sent) {
      clock.turn();
      await turn();
    }
    expect(nbytes).toBe(sent);
  });

  it('is all handed on before the end', async () => {
    const [here, there] = await pair();
    const clock = new HandClock();
    const budget = new TurnBudget(clock, 1);
    budget.admits();
    clock.pass(1);
    const seen: string[] = [];
    const reads = new PacedReads(here, budget, (bytes) => seen.push(bytes.toString()));
    const ended = once(here, 'end');
    there.end('last words');
    await ended;
    expect(seen).toEqual([]);
    reads.finish();
    expect(seen).toEqual(['last words']);
  });

  it('stays where it is while its owner wants no more, also after it has waited', async () => {
    const [here, there] = await pair();
    const clock = new HandClock();
    const budget = new TurnBudget(clock, 1);
    budget.admits();
    clock.pass(1);
    const reads = new PacedReads(here, budget, () => undefined);
    there.write(Buffer.alloc(1024 * 1024));
    while (!here.isPaused()) await turn();
    reads.pause();
    clock.turn();
    clock.turn();
    expect(here.isPaused()).toBe(true);
    reads.resume();
    expect(here.isPaused()).toBe(false);
  });
});

describe('connections that bring more than a turn can take', () => {
  /** Peers that send many messages at once; each takes its receiver a whole turn. */
  async function burst(peers: number, perPeer: number) {
    const clock = new LoopClock();
    const handled: { readonly peer: number; readonly index: number }[] = [];
    const listener = await tcp.create({ clock }, {}).listen('tcp://127.0.0.1:0', () => ({
      onMessages: (batch) => {
        clock.pass(1000);
        handled.push(...(batch as unknown as typeof handled));
      },
      onClose: () => undefined,
    }));
    const transport = tcp.create({ clock: new SystemClock() }, {});
    const connections: Connection[] = [];
    for (let peer = 0; peer < peers; peer++) {
      const deaf = () => ({ onMessages: () => undefined, onClose: () => undefined });
      connections.push(await transport.connect(listener.address, deaf));
    }
    onTestFinished(() => {
      for (const connection of connections) connection.abort(new Error('the test is over'));
      void listener.close();
    });
    // Each has a separate frame.
    const bytes = new Uint8Array(64 * 1024);
    for (let index = 0; index < perPeer; index++) {
      for (const [peer, connection] of connections.entries()) {
        connection.send({ peer, index, bytes });
      }
    }
    while (handled.length < peers * perPeer) await turn();
    return handled;
  }

  it('lose nothing, and keep the order of each', async () => {
    const handled = await burst(3, 30);
    for (let peer = 0; peer < 3; peer++) {
      const own = handled.filter((message) => message.peer === peer);
      expect(own.map(({ index }) => index)).toEqual(Array.from({ length: 30 }, (_, at) => at));
    }
  });

  it('are served in turn', async () => {
    const handled = await burst(4, 40);
    const first = handled.slice(0, 80);
    for (let peer = 0; peer < 4; peer++) {
      expect(first.filter((message) => message.peer === peer).length).toBeGreaterThan(10);
    }
  });
});
