import type { ClusterView, Clock, TaskView, Timer } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';

/** What {@link PendingWants} needs of the scheduler. */
interface WantScope {
  readonly cluster: ClusterView;
  readonly clock: Clock;
  /** Sends the wanted keys to the scheduler, after everything that the client has sent before. */
  want(client: string, keys: readonly string[]): void;
  /** Ends when no graph is being unpacked. */
  graphsSettled(): Promise<void>;
}

/**
 * How long a client may want a key that the scheduler does not know, counted from when all graphs
 * are unpacked. Futures travel between clients faster than the graphs that create their keys.
 */
const PATIENCE_MS = 10_000;

/**
 * Keys that clients want and the scheduler does not know yet. An entry ends when a graph brings the
 * key. After a time-out the client receives the message that the key does not exist.
 */
export class PendingWants {
  /** Clients by key. */
  private readonly pending = new Map<string, Set<string>>();
  private readonly timers = new Set<Timer>();

  constructor(private readonly scope: WantScope) {}

  desire(client: string, keys: readonly string[]): void {
    const { cluster } = this.scope;
    const known = keys.filter((key) => cluster.tasks.has(key));
    if (known.length > 0) this.scope.want(client, known);
    if (known.length === keys.length) return;
    const unknown = keys.filter((key) => !cluster.tasks.has(key));
    for (const key of unknown) {
      const clients = this.pending.get(key);
      if (clients === undefined) this.pending.set(key, new Set([client]));
      else clients.add(client);
    }
    this.wait(client, unknown);
  }

  release(client: string, keys: readonly string[]): void {
    if (this.pending.size === 0) return;
    for (const key of keys) this.take(key, client);
  }

  dropClient(client: string): void {
    this.release(client, [...this.pending.keys()]);
  }

  tasksAdded(tasks: readonly TaskView[]): void {
    if (this.pending.size === 0) return;
    for (const { key } of tasks) {
      const clients = this.pending.get(key);
      if (clients === undefined) continue;
      this.pending.delete(key);
      for (const client of clients) {
        this.scope.want(client, [key]);
      }
    }
  }

  close(): void {
    for (const timer of this.timers) timer.cancel();
    this.timers.clear();
    this.pending.clear();
  }

  private wait(client: string, keys: readonly string[]): void {
    const timer = this.scope.clock.setTimer(PATIENCE_MS, () => {
      this.timers.delete(timer);
      const settled = this.scope.graphsSettled().then(() => this.giveUp(client, keys));
      inBackground(settled, () => this.giveUp(client, keys));
    });
    this.timers.add(timer);
  }

  /**
   * Passes the unknown keys on, so that the scheduler answers the client that it does not know
   * them.
   */
  private giveUp(client: string, keys: readonly string[]): void {
    const lost = keys.filter((key) => this.take(key, client));
    if (lost.length === 0) return;
    this.scope.want(client, lost);
  }

  /** Removes an entry. Returns whether it was there. */
  private take(key: string, client: string): boolean {
    const clients = this.pending.get(key);
    if (clients?.delete(client) !== true) return false;
    if (clients.size === 0) this.pending.delete(key);
    return true;
  }
}
