import { YardmasterError } from '../../../core/api/index.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';
import { printable } from '../../../core/util/printable.ts';

/** Flags of `retire`. */
export interface RetireFlags extends ClientFlags {
  readonly count?: number;
  readonly target?: number;
  /** False: they stay, without tasks and data. */
  readonly close?: boolean;
}

const KEPT_CODE = 1;

/** `yardmaster retire`. Exit code 1 when one of the workers was kept. */
export function retireCommand(workers: readonly string[], flags: RetireFlags): Promise<number> {
  const { count, target, close } = flags;
  const ways = [workers.length > 0, count !== undefined, target !== undefined].filter(Boolean);
  if (ways.length !== 1) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'say which workers to retire: by addresses, names or hosts, or by --count, or by --target; one of these',
    );
  }
  return withClient(flags, 'retire', async (client) => {
    const answer = await client.retireWorkers({
      ...(workers.length > 0 ? { workers } : {}),
      ...(count === undefined ? {} : { n: count }),
      ...(target === undefined ? {} : { target }),
      ...(close === undefined ? {} : { close }),
    });
    const { retired, kept } = answer;
    const lines = [
      ...retired.map(({ name, address }) => `retired ${name} (${address})`),
      ...kept.map(({ worker, reason }) => `kept ${worker}: ${reason}`),
    ];
    print(answer, lines.map(printable).join('\n') || 'no worker was to be retired', flags);
    return kept.length === 0 ? 0 : KEPT_CODE;
  });
}
