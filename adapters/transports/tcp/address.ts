import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';

import { YardmasterError } from '../../../core/api/index.ts';
import { isLoopback } from '../../../core/util/hosts.ts';

/** Where a socket connects or listens. */
export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const LOCAL_HOST = '127.0.0.1';
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
  return outer?.address ?? LOCAL_HOST;
}

/**
 * The address of this machine from which the system reaches a peer, and so the one under which others on the way to that
 * peer reach this machine; 127.0.0.1 when the peer is on this machine, or cannot be reached now. Nothing is sent: a
 * connected UDP socket only has the system choose the route.
 *
 * @param address - `scheme://host:port` of the peer
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export async function hostTowards(address: string, scheme: string): Promise<string> {
  const target = parseAddress(address, LOCAL_HOST, scheme);
  if (isLoopback(target.host)) return LOCAL_HOST;
  try {
    const { address: host, family } = await lookup(target.host);
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.connect(target.port, host, resolve);
      });
      const own = socket.address().address;
      return isLoopback(own) ? LOCAL_HOST : own;
    } finally {
      socket.close();
    }
  } catch {
    return LOCAL_HOST; // The attempt to connect says what is wrong.
  }
}
