import { collaborator } from './injection.ts';
import { YardmasterError } from '../api/errors.ts';
import type { UseEntry } from '../api/plugin.ts';
import {
  type GraphLinks,
  type KernelSlots,
  type PolicySlots,
  SLOT_NAMES,
  type SlotName,
} from '../api/policies.ts';
import { original, readOnly } from '../shared/read-only.ts';
import { hint } from '../shared/words.ts';
import type { RoleName } from '../api/rules.ts';
import type { Named, NamedRule } from '../kernel/ports.ts';
import { checkPolicy, membersOf } from './contracts.ts';
import type { HookRegistry } from './hooks.ts';

interface Provider {
  /** The owner of the slot, for messages: `the configuration`, `plugin "pack"`. */
  readonly owner: string;
  readonly name: string;
  readonly policy: PolicySlots[SlotName];
  readonly entry?: UseEntry;
}

export type PolicyNames = Readonly<Record<SlotName, string>> & { readonly rules?: string };

/** Policies for all slots. */
export type Policies = { readonly [Slot in SlotName]: Named<PolicySlots[Slot]> };

/** The provider of each slot: exactly one, or the built-in policy. */
@collaborator
export class PolicySlotTable {
  private readonly providers = new Map<SlotName, Provider>();
  /** Rules of each owner. */
  private readonly owned = new Map<string, readonly NamedRule[]>();
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

  /** Takes rules in the place of those that the owner had; they are checked, and see what they should. */
  provideRules(rules: readonly NamedRule[], owner: string): void {
    this.owned.set(owner, rules);
  }

  /** Those of the configuration, and then those of plugins. */
  get rules(): readonly NamedRule[] {
    return [...this.owned.values()].flat();
  }

  /** Takes away the rules of an owner, and empties the slots that it has filled. Returns whether there were any. */
  withdraw(owner: string): boolean {
    let any = this.owned.delete(owner);
    for (const [slot, provider] of this.providers) {
      if (provider.owner !== owner) continue;
      this.providers.delete(slot);
      any = true;
    }
    return any;
  }

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

  /** Names of what fills the slots, and of the rules if there are any. */
  get names(): PolicyNames {
    const names = SLOT_NAMES.map((slot) => [slot, this.inCharge(slot).name] as const);
    const rules = this.rules.map(({ name }) => name).join(', ');
    const inCharge = Object.fromEntries(names) as Record<SlotName, string>;
    return rules === '' ? inCharge : { ...inCharge, rules };
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
  const names = owner === undefined ? SLOT_NAMES : [...SLOT_NAMES, 'rules'];
  const what =
    owner === undefined
      ? `there is no policy slot "${name}"`
      : `${owner} fills the slot "${name}", which does not exist`;
  throw new YardmasterError(
    'ERR_SLOT',
    `${what}${hint(name, names)}; there are ${names.join(', ')}`,
    { slot: name, owner },
  );
}

/**
 * A policy or rule that is not part of this package: it sees views of the state, which it cannot change, and its answers are
 * taken back from views. An ordering policy gets a copy of the links, which are read too often for views. What it
 * remembers is its own, so `restore` is given that itself.
 * @param name - of the policy, for messages about slow calls
 * @param hooks - times its calls; undefined: nobody does
 */
export function shieldedPolicy<Policy extends object>(
  role: RoleName,
  policy: Policy,
  name = '',
  hooks?: Pick<HookRegistry, 'timed'>,
): Policy {
  const methods = policy as Readonly<Record<string, unknown>>;
  const shielded: Record<string, unknown> = {};
  for (const member of membersOf(role)) {
    const method = methods[member];
    if (typeof method !== 'function') {
      if (member in policy) Object.defineProperty(shielded, member, { get: () => methods[member] });
      continue;
    }
    const call = shieldedCall(role, member, (method as Method).bind(policy));
    const kind = role === 'rules' ? 'rule' : `policy of ${role}`;
    const subject = `${member} of the ${kind} "${name}"`;
    shielded[member] = hooks === undefined ? call : hooks.timed(subject, call);
  }
  return shielded as Policy;
}

type Method = (a?: unknown, b?: unknown, c?: unknown, d?: unknown) => unknown;

function shieldedCall(role: RoleName, member: string, method: Method): Method {
  if (member === 'restore') return (memory, cluster) => method(memory, readOnly(cluster));
  if (member === 'order' && role === 'ordering') {
    return (tasks, keys, links) =>
      original(method(readOnly(tasks), readOnly(keys), links && copyOf(links as GraphLinks)));
  }
  // No method has more parameters; naming them saves two arrays for each call.
  return (a, b, c, d) => original(method(readOnly(a), readOnly(b), readOnly(c), readOnly(d)));
}

function copyOf(links: GraphLinks): GraphLinks {
  const { offsets, targets } = links;
  return { ...links, offsets: offsets.slice(), targets: targets.slice() };
}
