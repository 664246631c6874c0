import { loadConfigObject } from '../../core/config/load.ts';
import type { ConfigInput, WorkerConfig } from '../../core/config/types.ts';
import type { StartWorkerOptions } from './start-worker.ts';

/** What a worker takes from its configuration as it is. */
export function settingsOf({
  onSchedulerLost,
  reconnectTimeout,
}: Partial<WorkerConfig>): Partial<StartWorkerOptions> {
  return {
    ...(onSchedulerLost === undefined ? {} : { onSchedulerLost }),
    ...(reconnectTimeout === undefined ? {} : { reconnectTimeoutMs: reconnectTimeout }),
  };
}

/** The same for a worker in a process of its own, as a value of `--settings`. */
export function settingsText({ onSchedulerLost, reconnectTimeout }: WorkerConfig): string {
  const worker: ConfigInput['worker'] = {
    onSchedulerLost,
    reconnectTimeout: timeText(reconnectTimeout),
  };
  return JSON.stringify(worker);
}

/** What {@link settingsText} wrote. */
export function readSettings(text: string): Partial<WorkerConfig> {
  const given = JSON.parse(text) as NonNullable<ConfigInput['worker']>;
  const { worker } = loadConfigObject({ worker: given }).config;
  return Object.fromEntries(Object.entries(worker).filter(([name]) => name in given));
}

/** A time as flags and configurations are written. */
export function timeText(ms: number): string {
  return Number.isFinite(ms) ? `${ms} ms` : 'inf';
}
