import { CLOCK, FIELDS, LIST, type Rules, TEXT } from '../../core/shared/schema.ts';
import type { CertificateFiles } from './certificate-layer.ts';
import type { Clock, Transport, TransportInput } from '../../core/api/index.ts';

/** The ways of a client or worker to its scheduler and to its peers. */
export interface NetworkOptions {
  /**
   * Path of the access file, for a scheduler at `tls://…`. Default: `YARDMASTER_ACCESS`, else what the
   * scheduler left on this machine.
   */
  readonly access?: string;
  /** Paths of certificates of one's own (PEM) in the place of an access file. */
  readonly tls?: CertificateFiles;
  /** Ways to reach others besides `tcp` and `tls`. */
  readonly transports?: readonly TransportInput[];
  readonly clock?: Clock;
}

export const NETWORK_RULES: Rules<NetworkOptions> = {
  ...{ access: TEXT, tls: FIELDS, transports: LIST, clock: CLOCK },
};

/**
 * Makes the transports that a program gives to a client. Few are given any, so the loader is loaded here.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function openTransports(
  given: readonly TransportInput[] | undefined,
  clock: Clock,
): Promise<readonly Transport[]> {
  if (given === undefined) return [];
  const { loadTransports } = await import('../../core/plugin-host/load-extensions.ts');
  const { resolverIn } = await import('../../core/plugin-host/module-files.ts');
  const resolver = resolverIn(process.cwd());
  return [...(await loadTransports(given, resolver, clock)).values()];
}
