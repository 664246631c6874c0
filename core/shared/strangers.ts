/** Peers without a hello; one more ends the oldest of the host that has the most of them, which is the least likely to be in order. */
export const STRANGERS_MAX = 1024;

/** The connections whose peers have not introduced themselves, in the order in which they came. */
export class Strangers<Peer> {
  private readonly byHost = new Map<string, Set<Peer>>();
  private count = 0;

  /** @param refuse - is called with one that is too many, and ends it */
  constructor(private readonly refuse: (oldest: Peer) => void) {}

  add(peer: Peer, host: string): void {
    const ofHost = this.byHost.get(host) ?? new Set();
    this.byHost.set(host, ofHost.add(peer));
    if (++this.count > STRANGERS_MAX) this.refuseOldest();
  }

  /** The peer has introduced itself, or is gone. No-op the second time. */
  delete(peer: Peer, host: string): void {
    const ofHost = this.byHost.get(host);
    if (ofHost?.delete(peer) !== true) return;
    this.count--;
    if (ofHost.size === 0) this.byHost.delete(host);
  }

  /** O(hosts). */
  private refuseOldest(): void {
    let [busiest, size] = ['', 0];
    for (const [host, ofHost] of this.byHost) {
      if (ofHost.size > size) [busiest, size] = [host, ofHost.size];
    }
    for (const oldest of this.byHost.get(busiest) ?? []) {
      this.delete(oldest, busiest);
      this.refuse(oldest);
      return;
    }
  }
}
