import type { Clock, Timer, WorkerMetrics } from '../../core/api/index.ts';
import { MEASURED_BYTES_MIN } from '../../core/shared/limits.ts';
import type { Gather, WorkerEvent } from '../../core/worker/events.ts';
import type { NetworkModel } from './options.ts';
import type { SimulatedStore } from './worker.ts';

/** Transfers of at most this size take the time of the whole link, and share it with none: 64 KiB. */
export const SMALL_BYTES = 64 * 1024;

/** Bytes that rounding may leave of a flow. */
const NOTHING_BYTES = 1e-3;

/** The two directions in which a worker is connected. */
export interface Port {
  readonly incoming: Link;
  readonly outgoing: Link;
}

interface Transfer extends Flow {
  readonly done: () => void;
  timer: Timer | undefined;
  /** The time at which the timer is due; a flow that needs longer by then sets the timer again. */
  dueMs: number;
}

/** The free part of the capacity of a link, below which transfers fill it. */
const FULL_RATIO = 1e-6;

/** Bytes between workers, in virtual time. Latency is added by those who send. */
export class SimulatedNetwork {
  /** Bytes that have arrived. */
  movedBytes = 0;
  transferCount = 0;
  /** Flows under way. */
  activeCount = 0;
  private readonly backbone: Link | undefined;
  private readonly changed = new Set<Link>();

  constructor(
    private readonly clock: Clock,
    private readonly model: NetworkModel,
  ) {
    this.backbone = model.backbone === Infinity ? undefined : linkOf(model.backbone);
  }

  connect(bandwidth: number = this.model.bandwidth): Port {
    return { incoming: linkOf(bandwidth), outgoing: linkOf(bandwidth) };
  }

  /** Milliseconds that a message waits at links that transfers fill. */
  waitMs(...links: readonly Link[]): number {
    const { queueMs } = this.model;
    return queueMs === 0 ? 0 : queueMs * links.filter(isFull).length;
  }

  /** @param done - called when the last byte has arrived, unless one of both ports was dropped before */
  transfer(from: Port, to: Port, nbytes: number, done: () => void): void {
    this.transferCount++;
    const links = [from.outgoing, to.incoming];
    if (this.backbone !== undefined) links.push(this.backbone);
    const nowMs = this.clock.nowMs();
    const flow: Transfer = {
      links,
      bytes: nbytes,
      rate: 0,
      sinceMs: nowMs,
      timer: undefined,
      dueMs: Infinity,
      done: () => {
        this.movedBytes += nbytes;
        done();
      },
    };
    this.activeCount++;
    if (this.model.sharing === 'none' || nbytes <= SMALL_BYTES) {
      const rate = Math.min(...links.map(({ capacity }) => capacity));
      flow.rate = rate;
      const tookMs = (1000 * nbytes) / rate + this.waitMs(...links);
      flow.timer = this.clock.setTimer(tookMs, () => this.end(flow));
      from.outgoing.alone.add(flow);
      to.incoming.alone.add(flow);
      return;
    }
    for (const link of links) {
      link.flows.add(flow);
      this.noteChange(link);
    }
  }

  /** Ends all transfers from and to a worker, without a word. */
  drop(port: Port): void {
    for (const link of [port.incoming, port.outgoing]) {
      for (const flow of [...link.flows, ...link.alone] as Transfer[]) {
        flow.timer?.cancel();
        this.remove(flow);
      }
    }
  }

  private end(flow: Transfer): void {
    this.remove(flow);
    flow.done();
  }

  private remove(flow: Transfer): void {
    this.activeCount--;
    for (const link of flow.links) {
      link.alone.delete(flow);
      if (link.flows.delete(flow)) this.noteChange(link);
    }
  }

  /** Rates are computed once for all that changes at one instant. */
  private noteChange(link: Link): void {
    if (this.changed.size === 0) this.clock.setTimer(0, () => this.share());
    this.changed.add(link);
  }

  private share(): void {
    const nowMs = this.clock.nowMs();
    const { links, flows } = flowsAround(this.changed);
    this.changed.clear();
    for (const flow of flows) {
      flow.bytes -= (flow.rate * (nowMs - flow.sinceMs)) / 1000;
      flow.sinceMs = nowMs;
    }
    shareFairly(links, flows);
    for (const flow of flows) this.arm(flow as Transfer, nowMs);
  }

  /** A timer that is due too early stays: when it fires, it is set again. */
  private arm(flow: Transfer, nowMs: number): void {
    const endMs = nowMs + (1000 * Math.max(0, flow.bytes)) / flow.rate;
    if (flow.timer !== undefined && flow.dueMs <= endMs) return;
    flow.timer?.cancel();
    flow.dueMs = endMs;
    flow.timer = this.clock.setTimer(endMs - nowMs, () => this.fired(flow));
  }

  private fired(flow: Transfer): void {
    const nowMs = this.clock.nowMs();
    flow.timer = undefined;
    const left = flow.bytes - (flow.rate * (nowMs - flow.sinceMs)) / 1000;
    const leftMs = (1000 * left) / flow.rate;
    // What rounding leaves may be too little to advance the clock.
    if (left <= NOTHING_BYTES || nowMs + leftMs === nowMs) this.end(flow);
    else this.arm(flow, nowMs);
  }
}

function linkOf(capacity: number): Link {
  return { capacity, flows: new Set(), alone: new Set(), left: 0, open: 0 };
}

/** One direction of the link of a worker, or the backbone. */
export interface Link {
  /** Bytes per second. */
  readonly capacity: number;
  /** The flows that share the link. */
  readonly flows: Set<Flow>;
  /** The flows that pass without sharing. */
  readonly alone: Set<Flow>;
  /** Bytes per second that no flow uses; while rates are computed, those that are left for flows without a rate. */
  left: number;
  /** While rates are computed: the number of flows without a rate. */
  open: number;
}

function isFull({ flows, left, capacity }: Link): boolean {
  return flows.size > 0 && left <= FULL_RATIO * capacity;
}

/** A transfer under way. */
interface Flow {
  readonly links: readonly Link[];
  /** Bytes that are still to come, as of `sinceMs`. */
  bytes: number;
  /** Bytes per second. */
  rate: number;
  sinceMs: number;
}

/** All flows whose rates may depend on what has changed at these links. */
function flowsAround(changed: Iterable<Link>): { links: Link[]; flows: Flow[] } {
  const links = [...changed];
  const known = new Set(links);
  const flows = new Set<Flow>();
  for (const link of links) {
    for (const flow of link.flows) {
      if (flows.has(flow)) continue;
      flows.add(flow);
      for (const other of flow.links) {
        if (known.has(other)) continue;
        known.add(other);
        links.push(other);
      }
    }
  }
  return { links, flows: [...flows] };
}

/**
 * Gives each flow its rate by progressive filling: the link whose share is the smallest fixes the rate of its flows,
 * then the next one, until all have a rate. O(links² + flows) at worst, for links that are connected by flows.
 */
function shareFairly(links: readonly Link[], flows: readonly Flow[]): void {
  for (const link of links) {
    link.left = link.capacity;
    link.open = link.flows.size;
  }
  for (const flow of flows) flow.rate = -1;
  let rest = links.filter((link) => link.open > 0);
  while (rest.length > 0) {
    let tightest = rest[0] as Link;
    for (const link of rest) {
      if (link.left * tightest.open < tightest.left * link.open) tightest = link;
    }
    const rate = Math.max(0, tightest.left / tightest.open);
    for (const flow of tightest.flows) if (flow.rate < 0) fix(flow, rate);
    rest = rest.filter((link) => link.open > 0);
  }
}

function fix(flow: Flow, rate: number): void {
  flow.rate = rate;
  for (const link of flow.links) {
    link.left -= rate;
    link.open--;
  }
}

/** The worker that sends and receives. */
export interface TransferOwner {
  readonly name: string;
  readonly address: string;
  readonly port: Port;
  readonly store: SimulatedStore;
  later(ms: number, callback: () => void): void;
  take(event: WorkerEvent): void;
}

/** The services of the simulated world that transfers use. */
export interface TransferWorld {
  readonly clock: Clock;
  readonly network: SimulatedNetwork;
  /** Milliseconds that a message from or to this worker takes. */
  messageMs(worker: string): number;
  /** Undefined: there is no such worker, or it has died. */
  transfersOf(address: string): SimulatedTransfers | undefined;
}

/** Answers to peers under way, beyond which these are asked to come back. */
const OUTGOING_MAX = 50;

/** A request of a peer, until its answer has left or failed. */
interface Served {
  readonly fail: () => void;
  /** The time of the request. */
  readonly askedMs: number;
}

/** The transfers of one worker from others and to them. */
export class SimulatedTransfers {
  receivedBytes = 0;
  private readonly serving = new Set<Served>();
  /** Requests of this worker, and the peers that serve them. */
  private readonly fetching = new Map<Served, SimulatedTransfers>();
  /** Large transfers since the last heartbeat, by the address of their source. */
  private readonly measured = new Map<string, { nbytes: number; ms: number }>();

  constructor(
    private readonly worker: TransferOwner,
    private readonly world: TransferWorld,
  ) {}

  /** Bytes per second of the large transfers since the last call, if there were any: of all, and by their source. */
  takeTransfers(): Pick<WorkerMetrics, 'bandwidth' | 'transfers'> {
    const all = { nbytes: 0, ms: 0 };
    const transfers = Array.from(this.measured, ([from, { nbytes, ms }]) => {
      all.nbytes += nbytes;
      all.ms += ms;
      return { from, bandwidth: (1000 * nbytes) / ms };
    });
    this.measured.clear();
    return all.ms === 0 ? {} : { bandwidth: (1000 * all.nbytes) / all.ms, transfers };
  }

  begin({ worker: address, keys }: Gather): void {
    const { worker, world } = this;
    const peer = world.transfersOf(address);
    const latencyMs = world.messageMs(worker.name) + world.network.waitMs(worker.port.outgoing);
    if (peer === undefined) {
      worker.later(2 * latencyMs, () => this.failed(address, keys));
      return;
    }
    const served: Served = {
      askedMs: world.clock.nowMs(),
      fail: () => {
        this.fetching.delete(served);
        worker.later(latencyMs, () => this.failed(address, keys));
      },
    };
    this.fetching.set(served, peer);
    peer.serving.add(served);
    const waitMs = world.network.waitMs(peer.worker.port.incoming);
    peer.worker.later(latencyMs + waitMs, () => peer.serve(served, keys, this));
  }

  /** The worker has died: what it was sending fails, what it was fetching is forgotten. */
  end(): void {
    for (const served of this.serving) served.fail();
    this.serving.clear();
    for (const [served, peer] of this.fetching) peer.serving.delete(served);
    this.fetching.clear();
  }

  private failed(address: string, keys: readonly string[]): void {
    const stimulusId = `lost-${keys[0] ?? ''}`;
    this.worker.take({ op: 'gather-network-failure', worker: address, stimulusId });
  }

  private serve(served: Served, keys: readonly string[], receiver: SimulatedTransfers): void {
    if (!this.serving.has(served)) return;
    const { world } = this;
    const { store, port, address } = this.worker;
    const end = (): void => {
      this.serving.delete(served);
      receiver.fetching.delete(served);
    };
    if (this.serving.size > OUTGOING_MAX) {
      end();
      receiver.worker.later(world.messageMs(address), () =>
        receiver.worker.take({ op: 'gather-busy', worker: address, stimulusId: 'busy' }),
      );
      return;
    }
    const found = keys.flatMap((key) => {
      const item = store.items.get(key);
      return item === undefined ? [] : [{ key, nbytes: item.nbytes, value: item.value }];
    });
    const total = found.reduce((sum, { nbytes }) => sum + nbytes, 0);
    const askedMs = world.clock.nowMs();
    this.worker.later(store.read(keys), () => {
      if (!this.serving.has(served)) return;
      world.network.transfer(port, receiver.worker.port, total, () => {
        end();
        receiver.worker.later(world.messageMs(address), () => {
          receiver.arrived(address, found, world.clock.nowMs() - askedMs, served.askedMs);
        });
      });
    });
  }

  private arrived(
    from: string,
    found: readonly { readonly key: string; readonly nbytes: number; readonly value: number }[],
    tookMs: number,
    startMs: number,
  ): void {
    const { store } = this.worker;
    let total = 0;
    for (const { key, nbytes, value } of found) {
      store.put(key, nbytes, value);
      total += nbytes;
    }
    this.receivedBytes += total;
    if (total >= MEASURED_BYTES_MIN && tookMs > 0) {
      const { nbytes = 0, ms = 0 } = this.measured.get(from) ?? {};
      this.measured.set(from, { nbytes: nbytes + total, ms: ms + tookMs });
    }
    const keys = found.map(({ key }) => key);
    const nbytes = found.map((item) => item.nbytes);
    const stimulusId = `got-${keys[0] ?? ''}`;
    const stopS = this.world.clock.nowMs() / 1000;
    const timing = { action: 'transfer', startS: startMs / 1000, stopS };
    this.worker.take({ op: 'gather-success', worker: from, keys, nbytes, timing, stimulusId });
  }
}
