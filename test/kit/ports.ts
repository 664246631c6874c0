import { HOOK_NAMES, type HookName } from '../../core/api/hooks.ts';
import type { KernelSlots } from '../../core/api/policies.ts';
import type { HookCalls, KernelPorts, NamedRule, PolicyFailure } from '../../core/kernel/ports.ts';
import { fifo } from '../../policies/fairness/fifo.ts';
import { depthFirst } from '../../policies/ordering/depth-first.ts';
import { rootish } from '../../policies/queuing/root-ish.ts';
import { earliestStart } from '../../policies/worker-selection/earliest-start.ts';
import { made } from './made.ts';

/** The policies that are configured by default. */
export function builtinPolicies(
  queuing: Partial<Parameters<typeof rootish.create>[0]> = {},
): KernelSlots {
  return {
    workerSelection: made(earliestStart),
    queuing: made(rootish, queuing),
    ordering: made(depthFirst),
    fairness: made(fifo),
  };
}

/** No observers. */
export function noHooks(): HookCalls {
  return Object.fromEntries(HOOK_NAMES.map((name) => [name, []])) as unknown as HookCalls;
}

/** Policies by slot, and rules, which have the weight 1 by default. */
export interface OwnPolicies extends Partial<KernelSlots> {
  readonly rules?: readonly (Omit<NamedRule, 'weight'> & Partial<NamedRule>)[];
}

export interface PortsOptions {
  readonly queuing?: Partial<Parameters<typeof rootish.create>[0]>;
  /** Policies that replace the built-in ones, which remain as fallbacks, and rules. */
  readonly policies?: OwnPolicies;
  readonly hooks?: Partial<HookCalls>;
  readonly onPolicyFailure?: (failure: PolicyFailure) => void;
}

/** Ports with the real policies; replaced ones are called `custom`. */
export function makePorts(options: PortsOptions = {}): KernelPorts {
  const fallbacks = builtinPolicies(options.queuing);
  const { workerSelection, queuing, ordering, fairness, rules } = options.policies ?? {};
  return {
    workerSelection: {
      name: workerSelection ? 'custom' : 'earliest-start',
      policy: workerSelection ?? fallbacks.workerSelection,
    },
    queuing: { name: queuing ? 'custom' : 'root-ish', policy: queuing ?? fallbacks.queuing },
    ordering: { name: ordering ? 'custom' : 'depth-first', policy: ordering ?? fallbacks.ordering },
    fairness: { name: fairness ? 'custom' : 'fifo', policy: fairness ?? fallbacks.fairness },
    rules: (rules ?? []).map((rule) => ({ weight: 1, ...rule })),
    fallbacks,
    hooks: { ...noHooks(), ...options.hooks },
    onPolicyFailure:
      options.onPolicyFailure ??
      (({ error }) => {
        throw error;
      }),
  };
}

/** One call of a hook. */
export interface HookCall {
  readonly hook: HookName;
  readonly args: readonly unknown[];
}

/** Hooks that write down every call. */
export function recordHooks(calls: HookCall[]): HookCalls {
  const recorders = HOOK_NAMES.map((hook) => {
    const record = (...args: unknown[]): void => void calls.push({ hook, args });
    return [hook, [record]];
  });
  return Object.fromEntries(recorders) as HookCalls;
}
