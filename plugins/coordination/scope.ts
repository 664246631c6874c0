import type { Clock, ClusterView, NewStimulus, YardmasterError } from '../../core/api/index.ts';
import { Budget } from './budget.ts';
import { DisconnectCleanup } from './disconnect-cleanup.ts';
import { ResultKeeper } from './result-keeper.ts';
import { Values } from './values.ts';
import type { WaitScope } from './wait-queue.ts';

/** What all of coordination shares. */
export interface CoordinationScope extends WaitScope {
  readonly keeper: ResultKeeper;
  readonly values: Values;
  /** Milliseconds for which a lease lives without being renewed. */
  readonly leaseTimeoutMs: number;
}

/** What the scheduler gives. */
interface CoordinationHost {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  enqueue(stimulus: NewStimulus): void;
}

/** Limits, from the configuration. */
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
