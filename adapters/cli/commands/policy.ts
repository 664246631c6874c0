import type { SlotName } from '../../../core/api/index.ts';
import type { Client } from '../../client/index.ts';
import { textTable } from '../text-table.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

/** Flags of `policy replace`. */
export interface ReplaceFlags extends ClientFlags {
  readonly options?: Readonly<Record<string, unknown>>;
}

/** `yardmaster policy list`. */
export function listPolicies(flags: ClientFlags): Promise<number> {
  return withClient(flags, 'policy', (client) => printPolicies(client, flags));
}

/** `yardmaster policy replace`. */
export function replacePolicy(slot: string, use: string, flags: ReplaceFlags): Promise<number> {
  return withClient(flags, 'policy', async (client) => {
    await client.policies.replace(slot as SlotName, use, flags.options);
    return printPolicies(client, flags);
  });
}

/** `yardmaster policy restore`. */
export function restorePolicy(slot: string, flags: ClientFlags): Promise<number> {
  return withClient(flags, 'policy', async (client) => {
    await client.policies.restore(slot as SlotName);
    return printPolicies(client, flags);
  });
}

async function printPolicies(client: Client, flags: ClientFlags): Promise<number> {
  const policies = await client.policies.current();
  print(policies, textTable(['slot', 'policy'], Object.entries(policies)), flags);
  return 0;
}
