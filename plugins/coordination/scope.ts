import {
  type Clock,
  type ClusterView,
  type NewStimulus,
  YardmasterError,
} from '../../core/api/index.ts';
import { ResultKeeper, Values } from './values.ts';
import { Budget, LinkedQueue, type WaitScope } from './wait-queue.ts';

/** The services that all parts of coordination share. */
export interface CoordinationScope extends WaitScope {
  readonly keeper: ResultKeeper;
  readonly values: Values;
  /** Milliseconds for which a lease lives without being renewed. */
  readonly leaseTimeoutMs: number;
}

/** The services of the scheduler. */
interface CoordinationHost {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  enqueue(stimulus: NewStimulus): void;
}

interface CoordinationLimits {
  readonly leaseTimeoutMs: number;
  readonly memoryLimitBytes: number;
}

/** Makes what all share. */
export function makeScope(
  host: CoordinationHost,
  { leaseTimeoutMs, memoryLimitBytes }: CoordinationLimits,
): CoordinationScope {
  const budget = new Budget(memoryLimitBytes);
  const departures = new DisconnectCleanup();
  const keeper = new ResultKeeper((stimulus) => host.enqueue(stimulus));
  const values = new Values({
    get cluster() {
      return host.cluster;
    },
    budget,
    keeper,
    departures,
  });
  const { clock } = host;
  return { clock, budget, departures, keeper, values, leaseTimeoutMs, busyLines: new Set() };
}

/** Fails all waiting calls. */
export function failAll({ busyLines }: CoordinationScope, error: YardmasterError): void {
  for (const line of [...busyLines]) line.fail(error);
}

/** The steps that undo what a client did when it leaves: its waiting calls, leases and so on, oldest first. */
export class DisconnectCleanup {
  private readonly byClient = new Map<string, LinkedQueue<(gone: YardmasterError) => void>>();

  /** Returns what withdraws it. @param onLeave - called with what to fail its calls with */
  add(client: string, onLeave: (gone: YardmasterError) => void): () => void {
    let line = this.byClient.get(client);
    if (line === undefined) {
      line = new LinkedQueue();
      this.byClient.set(client, line);
    }
    const ofClient = line;
    const place = ofClient.push(onLeave);
    return () => {
      ofClient.remove(place);
      if (ofClient.size === 0 && this.byClient.get(client) === ofClient) {
        this.byClient.delete(client);
      }
    };
  }

  /** The client is gone. What it is given meanwhile (it may be next in a line) is taken back, too. */
  leave(client: string): void {
    if (!this.byClient.has(client)) return;
    // One for all: a client may have left very many calls.
    const gone = new YardmasterError('ERR_CLOSED', `the client ${client} is gone`, { client });
    for (
      let line = this.byClient.get(client);
      line !== undefined;
      line = this.byClient.get(client)
    ) {
      const onLeave = line.shift();
      if (line.size === 0) this.byClient.delete(client);
      onLeave?.(gone);
    }
  }
}
