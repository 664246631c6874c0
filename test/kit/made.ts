import type { PolicyDefinition, PolicySlots, SlotName } from '../../core/api/index.ts';
import { AT_RUN_TIME, checkOptions } from '../../core/plugin-host/extension-options.ts';

/** The policy that a definition makes of options, which are checked and completed as those of a configuration are. */
export function made<Slot extends SlotName, Options>(
  { name, optionsSchema, create }: PolicyDefinition<Slot, Options>,
  options: Partial<NoInfer<Options>> = {},
): PolicySlots[Slot] {
  return create(checkOptions(optionsSchema, options, AT_RUN_TIME, name) as Options);
}
