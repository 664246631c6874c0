import { networkInterfaces } from 'node:os';

import { YardmasterError } from '../../../core/api/index.ts';

/** Where a socket connects or listens. */
export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^t(?:cp|ls):\/\/(?:\[(?<v6>[^\]]+)\]|(?<name>[^:/[\]]*)):(?<port>\d{1,5})\/?$/;

/**
 * Reads `tcp://127.0.0.1:8786`, `tcp://[::1]:8786`, `tcp://localhost:0`, `tcp://:8786`.
 *
 * @param defaultHost - for an address that names none
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export function parseAddress(address: string, defaultHost: string, scheme = 'tcp'): HostAndPort {
  const groups = address.startsWith(`${scheme}:`) ? ADDRESS.exec(address)?.groups : undefined;
  const port = Number(groups?.['port'] ?? NaN);
  if (groups === undefined || !(port <= 65_535)) {
    throw new YardmasterError(
      'ERR_CONNECT',
      `${JSON.stringify(address)} is not an address of the form ${scheme}://host:port (${scheme}://127.0.0.1:8786, ${scheme}://[::1]:8786)`,
      { address },
    );
  }
  const host = groups['v6'] ?? groups['name'] ?? '';
  return { host: host === '' ? defaultHost : host, port };
}

/** IPv6 hosts in brackets; IPv4 addresses that come as IPv6 in their usual form. */
export function formatAddress({ host, port }: HostAndPort, scheme = 'tcp'): string {
  const plain = host.startsWith('::ffff:') && host.includes('.') ? host.slice(7) : host;
  return `${scheme}://${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}

/** A wildcard is nothing that a peer could connect to: then the machine's first outer address. */
export function reachableHost(boundHost: string): string {
  if (boundHost !== '0.0.0.0' && boundHost !== '::') return boundHost;
  const outer = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal);
  return outer?.address ?? '127.0.0.1';
}
