import type { Client } from '../client/index.ts';
import { type ClientFlags, print, withClient } from './with-client.ts';

/** What `yardmaster amm` can do. */
export const AMM_ACTIONS = ['status', 'start', 'stop', 'run'] as const;

/** One of them. */
export type AmmAction = (typeof AMM_ACTIONS)[number];

/** `yardmaster amm`. */
export function ammCommand(action: AmmAction, flags: ClientFlags): Promise<number> {
  return withClient(flags, 'amm', async (client) => {
    if (action === 'run') {
      const round = await client.amm.runOnce();
      const { accepted, suggested } = round;
      print(round, `accepted ${accepted} of ${suggested} suggestions`, flags);
      return 0;
    }
    if (action === 'start') await client.amm.start();
    if (action === 'stop') await client.amm.stop();
    await printStatus(client, flags);
    return 0;
  });
}

async function printStatus(client: Client, flags: ClientFlags): Promise<void> {
  const running = await client.amm.running();
  print({ running }, running ? 'running' : 'stopped', flags);
}
