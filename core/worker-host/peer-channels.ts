import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { DataStore } from '../api/executor.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Transport } from '../api/transport.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { KeptChannels, openChannel } from '../shared/channels.ts';
import { sharedBytes, sharedMemoryOf } from '../util/bytes.ts';

export const NETWORK: Token<Network> = token('network');

/** The way to other workers. */
export interface Network {
  readonly clock: Clock;
  readonly transports: ReadonlyMap<string, Transport>;
  /** Milliseconds for a connection to be made, and for it to be answered. */
  readonly connectTimeoutMs: number;
}

/** @throws YardmasterError `ERR_CONNECT` when none speaks the scheme of the address */
export function transportFor({ transports }: Network, address: string): Transport {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ?? '';
  const transport = transports.get(scheme);
  if (transport !== undefined) return transport;
  const known = [...transports.keys()].map((name) => `${name}://`).join(', ');
  throw new YardmasterError(
    'ERR_CONNECT',
    `no transport speaks the scheme of ${JSON.stringify(address)}; this worker knows ${known}`,
    { address },
  );
}

/** Connections to other workers. */
@collaborator
export class PeerChannels extends KeptChannels {
  constructor(@inject(NETWORK) network: Network) {
    super('this worker', async (address, handlers) => {
      const transport = transportFor(network, address);
      const { clock, connectTimeoutMs: timeoutMs } = network;
      return openChannel({ transport, address, role: 'peer', clock, timeoutMs }, handlers);
    });
  }
}

/** Results of this size lie in shared memory, which threads read without a copy. */
export const SHARED_BYTES_MIN = 64 * 1024;

/** The results of one transfer, for which the store reserves space before they arrive. */
export class IncomingResults {
  private readonly releases: (() => void)[] = [];

  constructor(private readonly store: DataStore) {}

  /**
   * The memory for a large result that will stay.
   * @throws RangeError when there is no memory for it
   */
  expect(nbytes: number): Uint8Array {
    const release = this.store.reserve?.(nbytes);
    if (release !== undefined) this.releases.push(release);
    return sharedBytes(nbytes);
  }

  /** All have come, or will not. */
  end(): void {
    for (const release of this.releases.splice(0)) release();
  }
}

/**
 * A value in the form in which it is stored. A large value is in shared memory. A small value has
 * separate memory, because a view would keep alive the whole frame in which it arrived.
 */
export function compact(value: Uint8Array): Uint8Array {
  const { buffer, byteLength } = value;
  if (buffer instanceof SharedArrayBuffer && buffer.byteLength === byteLength) return value;
  if (sharedMemoryOf(value) !== undefined) return value;
  if (byteLength >= SHARED_BYTES_MIN) {
    const shared = sharedBytes(byteLength);
    shared.set(value);
    return shared;
  }
  if (buffer.byteLength - byteLength <= byteLength / 8) return value;
  return Uint8Array.prototype.slice.call(value);
}
