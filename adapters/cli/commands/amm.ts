import type { AmmRound, AmmStatus } from '../../../core/api/index.ts';
import type { Client } from '../../client/index.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

/** Flags of `amm`. */
export interface AmmFlags extends ClientFlags {
  readonly options?: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly interval?: number;
  readonly measure?: string;
}

/** `yardmaster amm` and what it does with `start`, `stop` and `set`. Prints the state after that. */
export function ammCommand(
  action: 'status' | 'start' | 'stop' | 'set',
  flags: AmmFlags,
): Promise<number> {
  return withAmm(flags, async ({ amm }) => {
    if (action === 'start') await amm.start();
    if (action === 'stop') await amm.stop();
    if (action === 'set') await amm.configure(settingsIn(flags));
  });
}

/** `yardmaster amm add`. */
export function addAmmPolicy(policy: string, flags: AmmFlags): Promise<number> {
  return withAmm(flags, ({ amm }) => amm.addPolicy(policy, flags.options));
}

/** `yardmaster amm remove`: the policy with this id, or all of this name. */
export function removeAmmPolicy(policy: string, flags: AmmFlags): Promise<number> {
  return withAmm(flags, ({ amm }) => amm.removePolicy(policy));
}

/** `yardmaster amm run`. Exit code 1 when a policy failed. */
export function runAmm(flags: AmmFlags): Promise<number> {
  return withClient(flags, 'amm', async (client) => {
    const round = await client.amm.runOnce();
    print(round, roundText(round), flags);
    return round.failures.length === 0 ? 0 : 1;
  });
}

async function withAmm(
  flags: AmmFlags,
  act: (client: Client) => Promise<unknown>,
): Promise<number> {
  return withClient(flags, 'amm', async (client) => {
    await act(client);
    const status = await client.amm.status();
    print(status, statusText(status), flags);
    return 0;
  });
}

function settingsIn({ interval, measure }: AmmFlags): Parameters<Client['amm']['configure']>[0] {
  return {
    ...(interval === undefined ? {} : { intervalMs: interval }),
    ...(measure === undefined ? {} : { measure: measure as AmmStatus['measure'] }),
  };
}

function statusText({ running, intervalMs, measure, policies, lastRound }: AmmStatus): string {
  const lines = policies.map(({ id, name, options }) => {
    const isPlain = options === undefined || Object.keys(options).length === 0;
    const given = isPlain ? '' : ` ${JSON.stringify(options)}`;
    return `- ${id === name ? name : `${name} (${id})`}${given}`;
  });
  return [
    `${running ? 'running' : 'stopped'}, interval ${intervalMs} ms, measure ${measure}`,
    ...(lines.length === 0 ? ['no policies'] : lines),
    ...(lastRound === undefined ? [] : [`last round: ${roundText(lastRound)}`]),
  ].join('\n');
}

function roundText({ suggested, accepted, underWay, refusals, failures }: AmmRound): string {
  return [
    `accepted ${accepted} of ${suggested} suggestions, ${underWay} copies under way`,
    ...refusals.map(
      ({ reason, count, example }) => `refused ${count}: ${reason} (such as ${example})`,
    ),
    ...failures.map(({ policy, message }) => `${policy} failed: ${message}`),
  ].join('\n');
}
