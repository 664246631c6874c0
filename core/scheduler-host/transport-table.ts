import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Builtins, UseEntry } from '../api/plugin.ts';
import type { Transport, TransportDefinition, TransportInput } from '../api/transport.ts';
import { hint, show } from '../shared/words.ts';
import type { Place } from '../plugin-host/extension-options.ts';
import { loadTransport, loadTransports } from '../plugin-host/load-extensions.ts';
import type { PluginResolver } from '../plugin-host/plugin-resolver.ts';

/** The ways to reach others, by scheme; what is built in is loaded when its scheme first comes up. */
export class TransportTable {
  private readonly byScheme = new Map<string, Transport>();
  configured: Transport | undefined;

  /**
   * @param given - in code; they win over the configuration
   * @param fallbacks - for schemes that the configuration does not name
   */
  constructor(
    private readonly clock: Clock,
    private readonly builtins: Builtins,
    private readonly given: readonly TransportInput[] = [],
    private readonly fallbacks: readonly Transport[] = [],
  ) {}

  /** Makes those that were given in code. */
  async load(resolver: PluginResolver): Promise<void> {
    const made = await loadTransports(this.given, resolver, this.clock);
    for (const [scheme, transport] of made) this.byScheme.set(scheme, transport);
  }

  /** The transport that a configuration names, with its options. One given in code stays in its place. */
  async addConfigured(entry: UseEntry, resolver: PluginResolver, place: Place): Promise<void> {
    const made = await loadTransport(entry, resolver, place, this.clock);
    if (!this.byScheme.has(made.scheme)) this.byScheme.set(made.scheme, made);
    this.configured = this.byScheme.get(made.scheme);
  }

  /** @throws YardmasterError `ERR_CONNECT` when nothing speaks the scheme of the address */
  async for(address: string): Promise<Transport> {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
    const known =
      this.byScheme.get(scheme ?? '') ??
      this.fallbacks.find((transport) => transport.scheme === scheme);
    if (known !== undefined) return known;
    const exported = scheme === undefined ? undefined : await this.builtins[scheme]?.();
    if (isDefinition(exported)) {
      const transport = exported.create({ clock: this.clock }, {} as never);
      this.byScheme.set(transport.scheme, transport);
      return transport;
    }
    const schemes = [...this.byScheme.keys()];
    const suggestion = scheme === undefined ? '' : hint(scheme, [...schemes, 'tcp']);
    throw new YardmasterError(
      'ERR_CONNECT',
      `no transport for the address ${show(address)}${suggestion}; use one like tcp://127.0.0.1:8786`,
      { address },
    );
  }
}

function isDefinition(value: unknown): value is TransportDefinition<never> {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as { kind?: unknown }).kind === 'transport'
  );
}
