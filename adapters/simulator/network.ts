import type { Clock, Timer } from '../../core/api/index.ts';
import { type Flow, flowsAround, type Link, shareFairly } from './fair-rates.ts';
import type { NetworkModel } from './options.ts';

/** Transfers of at most this size take the time of the whole link, and share it with none: 64 KiB. */
const SMALL_BYTES = 64 * 1024;

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
  /** When the timer is due; the flow may need longer by now, then the timer is set again. */
  dueMs: number;
}

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
      flow.timer = this.clock.setTimer((1000 * nbytes) / rate, () => this.end(flow));
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
