import { YardmasterError } from '../api/errors.ts';
import { token, type Token } from '../api/plugin.ts';
import type { UseEntry } from '../api/plugin.ts';
import { type KernelSlots, type PolicySlots, SLOT_NAMES, type SlotName } from '../api/policies.ts';
import { hint } from '../shared/words.ts';
import type { Named } from '../kernel/ports.ts';
import { checkPolicyNames } from './policy-names.ts';

export const SLOTS: Token<PolicySlotTable> = token('policy-slots');

/** The methods without which something cannot fill a slot; exactly one of each inner list. */
const REQUIRED: Readonly<Record<SlotName, readonly (readonly string[])[]>> = {
  workerSelection: [['score', 'select']],
  queuing: [['isRootish'], ['slotLimit'], ['selectRootish']],
  ordering: [['order']],
  fairness: [['generations']],
  stealing: [],
};

/** Where every method is optional: at least one of these. */
const SOME_OF: Readonly<Partial<Record<SlotName, readonly string[]>>> = {
  stealing: ['mayTake', 'victims', 'levelOf', 'order', 'pays'],
};

interface Provider {
  /** Who fills the slot, for messages: `the configuration`, `plugin "pack"`. */
  readonly owner: string;
  readonly name: string;
  readonly policy: PolicySlots[SlotName];
  readonly entry?: UseEntry;
}

/** Policies for all slots. */
export type Policies = { readonly [Slot in SlotName]: Named<PolicySlots[Slot]> };

/** Who fills which slot: exactly one provider, or the built-in policy. */
export class PolicySlotTable {
  private readonly providers = new Map<SlotName, Provider>();
  private builtin: Policies | undefined;

  /** The built-in policies: they fill empty slots and stand in when a policy fails. */
  setBuiltin(policies: Policies): void {
    this.builtin = policies;
  }

  /**
   * Fills a slot. The same owner may fill it anew.
   * @throws YardmasterError `ERR_SLOT` when another owner has filled it
   */
  provide<Slot extends SlotName>(
    slot: Slot,
    policy: Named<PolicySlots[Slot]>,
    owner: string,
  ): void {
    checkSlot(slot, owner);
    const other = this.providers.get(slot);
    if (other !== undefined && other.owner !== owner) {
      throw new YardmasterError(
        'ERR_SLOT',
        `the slot ${slot} has two providers: "${other.name}" from ${other.owner} and "${policy.name}" from ${owner}; remove one of both`,
        { slot, providers: [other.owner, owner], policies: [other.name, policy.name] },
      );
    }
    checkPolicy(slot, policy.policy, `${policy.name} from ${owner}`);
    this.providers.set(slot, { owner, ...policy });
  }

  /** Empties the slots that an owner has filled. Returns whether there were any. */
  withdraw(owner: string): boolean {
    let any = false;
    for (const [slot, provider] of this.providers) {
      if (provider.owner !== owner) continue;
      this.providers.delete(slot);
      any = true;
    }
    return any;
  }

  /** Slots that an owner fills. */
  filledBy(owner: string): SlotName[] {
    return SLOT_NAMES.filter((slot) => this.providers.get(slot)?.owner === owner);
  }

  /** The built-in policies that the kernel asks when others fail. */
  get fallbacks(): KernelSlots {
    const { workerSelection, queuing, ordering, fairness } = this.builtins();
    return {
      workerSelection: workerSelection.policy,
      queuing: queuing.policy,
      ordering: ordering.policy,
      fairness: fairness.policy,
    };
  }

  /**
   * The policy that fills a slot.
   * @throws YardmasterError `ERR_SLOT` when no policy fills it and nothing is built in for it
   */
  inCharge<Slot extends SlotName>(slot: Slot): Named<PolicySlots[Slot]> {
    const { name, policy, entry } = this.providers.get(slot) ?? this.builtins()[slot];
    const named = { name, policy: policy as PolicySlots[Slot] };
    return entry === undefined ? named : { ...named, entry };
  }

  /** Names of what fills the slots. */
  get names(): Readonly<Record<SlotName, string>> {
    const names = SLOT_NAMES.map((slot) => [slot, this.inCharge(slot).name] as const);
    return Object.fromEntries(names) as Record<SlotName, string>;
  }

  private builtins(): Policies {
    if (this.builtin !== undefined) return this.builtin;
    throw new YardmasterError('ERR_SLOT', 'there are no built-in policies to fall back on');
  }
}

/**
 * @param owner - that fills the slot, for the message
 * @throws YardmasterError `ERR_SLOT` when there is no such slot
 */
export function checkSlot(slot: unknown, owner?: string): asserts slot is SlotName {
  if (SLOT_NAMES.includes(slot as SlotName)) return;
  const name = String(slot);
  const what =
    owner === undefined
      ? `there is no policy slot "${name}"`
      : `${owner} fills the slot "${name}", which does not exist`;
  throw new YardmasterError(
    'ERR_SLOT',
    `${what}${hint(name, SLOT_NAMES)}; there are ${SLOT_NAMES.join(', ')}`,
    { slot: name, ...(owner === undefined ? {} : { owner }) },
  );
}

/** @throws YardmasterError `ERR_SLOT` when it lacks a method of the slot, or has a misspelt one */
export function checkPolicy(slot: SlotName, policy: unknown, source: string): void {
  const methods = (policy ?? {}) as Record<string, unknown>;
  checkPolicyNames(slot, methods, source);
  for (const names of REQUIRED[slot]) {
    const present = names.filter((name) => typeof methods[name] === 'function');
    if (present.length === 1) continue;
    if (present.length > 1) {
      throw new YardmasterError(
        'ERR_SLOT',
        `${source} cannot fill the slot ${slot}: it has both ${present.join(' and ')}; keep one of them`,
        { slot, present },
      );
    }
    throw missing(slot, source, names);
  }
  const some = SOME_OF[slot];
  if (some?.some((name) => typeof methods[name] === 'function') === false) {
    throw missing(slot, source, some);
  }
}

function missing(slot: SlotName, source: string, names: readonly string[]): YardmasterError {
  return new YardmasterError(
    'ERR_SLOT',
    `${source} cannot fill the slot ${slot}: it has no method ${names.join(' or ')}`,
    { slot, missing: names },
  );
}
