import type { Clock } from '../../core/api/index.ts';
import type { Gather, WorkerEvent } from '../../core/worker/events/events.ts';
import type { Port, SimulatedNetwork } from './network.ts';
import type { SimulatedStore } from './store.ts';

/** The worker that sends and receives. */
export interface TransferOwner {
  readonly name: string;
  readonly address: string;
  readonly port: Port;
  readonly store: SimulatedStore;
  later(ms: number, callback: () => void): void;
  take(event: WorkerEvent): void;
}

/** What transfers need of the world around. */
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
}

/** What one worker fetches from others, and serves to them. */
export class SimulatedTransfers {
  receivedBytes = 0;
  private readonly serving = new Set<Served>();
  /** Requests of this worker, and the peers that serve them. */
  private readonly fetching = new Map<Served, SimulatedTransfers>();
  private measuredBytes = 0;
  private measuredMs = 0;

  constructor(
    private readonly worker: TransferOwner,
    private readonly world: TransferWorld,
  ) {}

  /** Bytes per second of the transfers since the last call, if there were any. */
  takeBandwidth(): number | undefined {
    const { measuredBytes, measuredMs } = this;
    this.measuredBytes = 0;
    this.measuredMs = 0;
    return measuredMs > 0 ? (1000 * measuredBytes) / measuredMs : undefined;
  }

  begin({ worker: address, keys }: Gather): void {
    const { worker, world } = this;
    const peer = world.transfersOf(address);
    const latencyMs = world.messageMs(worker.name);
    if (peer === undefined) {
      worker.later(2 * latencyMs, () => this.failed(address, keys));
      return;
    }
    const served: Served = {
      fail: () => {
        this.fetching.delete(served);
        worker.later(latencyMs, () => this.failed(address, keys));
      },
    };
    this.fetching.set(served, peer);
    peer.serving.add(served);
    peer.worker.later(latencyMs, () => peer.serve(served, keys, this));
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
          receiver.arrived(address, found, world.clock.nowMs() - askedMs);
        });
      });
    });
  }

  private arrived(
    from: string,
    found: readonly { readonly key: string; readonly nbytes: number; readonly value: number }[],
    tookMs: number,
  ): void {
    const { store } = this.worker;
    for (const { key, nbytes, value } of found) {
      store.put(key, nbytes, value);
      this.receivedBytes += nbytes;
      this.measuredBytes += nbytes;
    }
    this.measuredMs += tookMs;
    const keys = found.map(({ key }) => key);
    const nbytes = found.map((item) => item.nbytes);
    const stimulusId = `got-${keys[0] ?? ''}`;
    this.worker.take({ op: 'gather-success', worker: from, keys, nbytes, stimulusId });
  }
}
