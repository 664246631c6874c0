import type { SchedulerHooks } from '../api/hooks.ts';
import type { KernelPorts, PolicyFailure } from '../kernel/ports.ts';
import type { HookRegistry } from './hook-table.ts';
import type { PolicySlotTable } from './policy-slots.ts';

/**
 * Here injection ends: what the kernel calls is one frozen object of functions and arrays, of the same
 * shape every time, so that its calls stay fast.
 *
 * @param own - the host's own observers; they run first and must not throw
 * @throws YardmasterError `ERR_SLOT` when a slot has no provider
 */
export function compilePorts(
  slots: PolicySlotTable,
  hooks: HookRegistry,
  own: Partial<SchedulerHooks>,
  onPolicyFailure: (failure: PolicyFailure) => void,
): KernelPorts {
  return Object.freeze({
    workerSelection: slots.inCharge('workerSelection'),
    queuing: slots.inCharge('queuing'),
    ordering: slots.inCharge('ordering'),
    fairness: slots.inCharge('fairness'),
    fallbacks: slots.fallbacks,
    hooks: hooks.compile(own),
    onPolicyFailure,
  });
}
