import type { Connection, Transport } from '../../../core/api/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { FaultyTransport } from '../../../adapters/testing/faulty-transport.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory/index.ts';

/** A network with a bug. */
export type Planted = (transport: Transport) => Transport;

/** Breaks the contract of transports: now and then a message is lost, and its connection lives on. */
export function losesMessages(inner: Transport): Transport {
  let count = 0;
  const lossy = (connection: Connection): Connection =>
    new Proxy(connection, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]): unknown => {
          const kept = name === 'send' ? given.filter(() => ++count % 40 > 0) : given;
          return Reflect.apply(value, target, kept);
        };
      },
    });
  return {
    scheme: inner.scheme,
    listen: (address, accept) => inner.listen(address, accept),
    connect: async (address, open, options) => {
      const connection = await inner.connect(address, (made) => open(lossy(made)), options);
      return lossy(connection);
    },
  };
}

/** A network in memory in which each peer has a way out of its own that can fail. */
export class Network {
  private readonly ways = new Map<string, FaultyTransport>();
  private readonly gone = new Set<string>();
  private readonly inner: Transport;

  constructor(clock: VirtualClock, delayMs: number, planted: Planted = (transport) => transport) {
    this.inner = planted(new InMemoryTransport(clock, { delayMs }));
  }

  /** The way out of a peer. */
  of(peer: string): FaultyTransport & Transport {
    let way = this.ways.get(peer);
    if (way === undefined) this.ways.set(peer, (way = new FaultyTransport(this.inner)));
    return way;
  }

  /** Breaks the connections that a peer has made, to one address or to all. */
  cut(peer: string, address?: string): void {
    this.of(peer).cut(address === undefined ? undefined : (other) => other === address);
  }

  /** A peer cannot reach an address, or any; what it is connected with stands still. The other direction is as it was. */
  stall(peer: string, address?: string): void {
    const affected = (other: string): boolean => address === undefined || other === address;
    this.of(peer).refuse((other) => affected(other) || this.gone.has(other));
    this.of(peer).stall(affected);
  }

  /** Ends all faults of a peer. */
  restore(peer: string): void {
    const way = this.of(peer);
    way.restore();
    way.refuse((address) => this.gone.has(address));
  }

  /** A machine without power: nothing from it or to it ever arrives again. */
  kill(peer: string, address: string): void {
    this.gone.add(address);
    const dead = this.of(peer);
    dead.refuse();
    dead.cut();
    this.ways.delete(peer);
    for (const way of this.ways.values()) {
      way.refuse((other) => this.gone.has(other));
      way.cut((other) => other === address);
    }
  }
}
