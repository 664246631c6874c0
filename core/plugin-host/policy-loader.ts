import { YardmasterError } from '../api/errors.ts';
import type { UseEntry } from '../api/plugin.ts';
import type { PolicyDefinition, PolicySlots, SlotName } from '../api/policies.ts';
import type { Named } from '../kernel/ports.ts';
import { isTrusted } from '../shared/read-only.ts';
import { checkDefinition, checkPolicy, checkStatics } from './contracts.ts';
import { checkOptions, noOptions, type Place } from './extension-options.ts';
import { construct, created } from './injection.ts';
import { checkKind, notOfKind } from './load-extension.ts';
import type { PluginResolver } from './plugin-resolver.ts';
import { shieldedPolicy } from './policy-slots.ts';

/**
 * Makes what fills a slot out of a definition, a class (its options go to the constructor), or an
 * instance that has the methods of the slot.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
 */
export async function loadPolicy<Slot extends SlotName>(
  resolver: PluginResolver,
  slot: Slot,
  entry: UseEntry,
  place: Place,
): Promise<Named<PolicySlots[Slot]>> {
  const { exported, source } = await resolver.resolve(entry.use, 'policy', slot);
  const { name, policy } = make(slot, exported, entry, place, source);
  checkPolicy(slot, policy, `${name} (${source})`);
  const shielded = isTrusted(exported) ? policy : shieldedPolicy(slot, policy as object);
  const named = { name, policy: shielded as PolicySlots[Slot] };
  return typeof entry.use === 'string' ? { ...named, entry } : named;
}

function make(
  slot: SlotName,
  exported: unknown,
  entry: UseEntry,
  place: Place,
  source: string,
): { name: string; policy: unknown } {
  const isClass = typeof exported === 'function';
  const owner = isClass ? 'class' : 'definition';
  const optionsOf = (schema: object | undefined, name: string): never =>
    checkOptions(schema, entry.options, place, `${name} from ${source}`, owner) as never;

  checkKind(exported, 'policy', source);
  if (isDefinition(exported)) {
    checkDefinition('policy', exported, source);
    const { name, optionsSchema, slot: own } = exported;
    if (own !== slot) {
      throw new YardmasterError(
        'ERR_SLOT',
        `${name} (${source}) is a policy for ${own} and cannot fill ${slot}`,
        { slot, policy: name },
      );
    }
    const options = optionsOf(optionsSchema, name);
    return { name, policy: created(() => exported.create(options), `${name} from ${source}`) };
  }
  if (isClass) {
    const Class = exported as unknown as PolicyClass;
    const { name } = Class;
    checkStatics(Class, `${name} from ${source}`);
    const options = optionsOf(Class.optionsSchema, name);
    return { name, policy: construct(Class, options, `${name} from ${source}`) };
  }
  if (typeof exported !== 'object' || exported === null) throw notOfKind('policy', source);
  const { name = exported.constructor.name } = exported as { name?: string };
  const shown = name === 'Object' ? source : name;
  noOptions(entry.options, place, shown);
  return { name: shown, policy: exported };
}

interface PolicyClass {
  readonly name: string;
  readonly optionsSchema?: object;
  new (options: never): unknown;
}

function isDefinition(value: unknown): value is PolicyDefinition<SlotName, never> {
  return (
    typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'policy'
  );
}
