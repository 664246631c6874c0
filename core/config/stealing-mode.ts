/** `scheduler.workStealing.mode`: another way to fill the policy slot `stealing`. */
import type { UseEntry } from '../api/plugin.ts';
import type { Problem } from './errors.ts';
import type { Config } from './types.ts';

/** Fills the slot `stealing` as the mode says; without a mode nothing changes. */
export function applyStealingMode(config: Config): Config {
  const { scheduler } = config;
  const { mode, horizon } = scheduler.workStealing;
  if (mode === undefined) return config;
  const stealing: UseEntry =
    mode === 'calm' ? { use: 'calm', options: { horizonMs: horizon } } : { use: 'dask' };
  return {
    ...config,
    scheduler: { ...scheduler, policies: { ...scheduler.policies, stealing } },
  };
}

/** What the schema cannot say: the slot is filled once. */
export function stealingModeProblems({ scheduler }: Config): Problem[] {
  const { policies, workStealing } = scheduler;
  if (policies.stealing === undefined || workStealing.mode === undefined) return [];
  const message = 'fills the slot that scheduler.policies.stealing fills as well; leave one out';
  return [{ at: ['scheduler', 'workStealing', 'mode'], message, aboutKey: true }];
}
