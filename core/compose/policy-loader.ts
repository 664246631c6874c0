import { YardmasterError } from '../api/errors.ts';
import type { PolicyDefinition, PolicySlots, SlotName } from '../api/policies.ts';
import type { UseEntry } from '../api/plugin.ts';
import type { Named } from '../kernel/ports.ts';
import { checkOptions, type Place } from './extension-options.ts';
import type { PluginResolver } from './plugin-resolver.ts';
import { checkPolicy } from './policy-slots.ts';

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
  return { name, policy: policy as PolicySlots[Slot] };
}

function make(
  slot: SlotName,
  exported: unknown,
  entry: UseEntry,
  place: Place,
  source: string,
): { name: string; policy: unknown } {
  const optionsOf = (schema: object | undefined, name: string): never =>
    checkOptions(schema, entry.options, place, `${name} from ${source}`) as never;

  if (isDefinition(exported)) {
    const { name, optionsSchema, slot: own } = exported;
    if (own !== slot) {
      throw new YardmasterError(
        'ERR_SLOT',
        `${name} (${source}) is a policy for ${own} and cannot fill ${slot}`,
        { slot, policy: name },
      );
    }
    return { name, policy: exported.create(optionsOf(optionsSchema, name)) };
  }
  if (typeof exported === 'function') {
    const Class = exported as unknown as PolicyClass;
    const { name } = Class;
    return { name, policy: new Class(optionsOf(Class.optionsSchema, name)) };
  }
  if (typeof exported !== 'object' || exported === null) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is no policy: expected a definition made by definePolicy, a class or an object`,
      { slot },
    );
  }
  const { name = exported.constructor.name } = exported as { name?: string };
  return { name: name === 'Object' ? source : name, policy: exported };
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
