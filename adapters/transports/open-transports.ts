import type { Clock, Transport, TransportInput } from '../../core/api/index.ts';

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
  const { PluginResolver } = await import('../../core/plugin-host/plugin-resolver.ts');
  const resolver = new PluginResolver({}, process.cwd());
  return [...(await loadTransports(given, resolver, clock)).values()];
}
