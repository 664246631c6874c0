import type { Transport } from '../../../core/api/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { FaultyTransport } from '../../../adapters/testing/faulty-transport.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';

/** A network in memory in which each peer has a way out of its own that can fail. */
export class Network {
  private readonly ways = new Map<string, FaultyTransport>();
  private readonly gone = new Set<string>();
  private readonly inner: Transport;

  /** @param made - what the network is made of, given one that works */
  constructor(clock: VirtualClock, delayMs: number, made: (transport: Transport) => Transport) {
    this.inner = made(new InMemoryTransport(clock, { delayMs }));
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

  /** Breaks the connections that anything has made to an address; what is on its way is lost. */
  cutAll(address: string): void {
    for (const way of this.ways.values()) way.cut((other) => other === address);
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
