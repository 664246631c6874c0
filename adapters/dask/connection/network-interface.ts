import { networkInterfaces } from 'node:os';

import { YardmasterError } from '../../../core/api/index.ts';
import { formatDaskAddress, parseDaskAddress } from './address.ts';

/**
 * The address of a network interface of this machine: its first IPv4 address, else its first IPv6 one.
 * @throws YardmasterError `ERR_CONFIG` that names the interfaces there are
 */
export function hostOfInterface(name: string): string {
  const interfaces = networkInterfaces();
  const addresses = Object.hasOwn(interfaces, name) ? (interfaces[name] ?? []) : [];
  const found = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0];
  if (found !== undefined) return found.address;
  const known = Object.keys(interfaces);
  throw new YardmasterError(
    'ERR_CONFIG',
    `there is no network interface "${name}" with an address; this machine has ${known.join(', ')}`,
    { interface: name, known },
  );
}

/** The addresses of all network interfaces of this machine. */
export function ownHosts(): string[] {
  return Object.values(networkInterfaces()).flatMap((own) => (own ?? []).map((one) => one.address));
}

/** Replaces the host of an address by the host of a network interface. */
export function onInterface(address: string, name: string | undefined): string {
  if (name === undefined) return address;
  return formatDaskAddress({ ...parseDaskAddress(address), host: hostOfInterface(name) });
}

/**
 * The address that is announced to peers.
 * @param contact - `tcp://host:port`, `host:port` or `host`; missing parts are taken from `bound`
 * @param bound - where the scheduler listens
 * @throws YardmasterError `ERR_CONFIG` when it has another form
 */
export function contactAddressOf(contact: string | undefined, bound: string): string {
  if (contact === undefined) return bound;
  const { scheme, port } = parseDaskAddress(bound);
  const groups =
    /^(?:(?<scheme>[a-z]+):\/\/)?(?<host>\[[^\]]+\]|[^:/]+)(?::(?<port>\d+))?\/?$/.exec(
      contact,
    )?.groups;
  if (groups === undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the contact address "${contact}" is not of the form tcp://host:port, host:port or host`,
      { contactAddress: contact },
    );
  }
  return `${groups['scheme'] ?? scheme}://${groups['host']}:${groups['port'] ?? port}`;
}
