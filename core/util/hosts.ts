/** The host in `scheme://host:port`, as it is written there. */
export function hostOf(address: string): string {
  const start = address.indexOf('://');
  const rest = start < 0 ? address : address.slice(start + 3);
  const colon = rest.lastIndexOf(':');
  return colon < 0 ? rest : rest.slice(0, colon);
}

/** True when only this machine reaches a host. */
export function isLoopback(host: string): boolean {
  return /^(localhost|\[?::1\]?|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(host);
}

/**
 * The reason why others cannot reach a worker under the address that it announces: a loopback address, although the
 * worker is on another machine. Undefined when it is not known to be wrong.
 *
 * @param peerAddress - from where the worker has connected
 * @param ownHosts - IP addresses of this machine
 */
export function unreachableAddress(
  address: string,
  peerAddress: string,
  ownHosts: () => Iterable<string>,
): string | undefined {
  const peer = hostOf(peerAddress);
  const isIp = /^([\d.]+|\[?[\da-f.]*:[\da-f:.]*(%\w+)?\]?)$/i.test(peer);
  if (!isLoopback(hostOf(address)) || !isIp || isLoopback(peer)) return undefined;
  if ([...ownHosts()].includes(peer.replace(/^\[|\]$/g, ''))) return undefined;
  return `the worker announces the address ${address}, which only its own machine reaches, and it has connected from ${peer}; start it with --host and the address under which others reach it (in code: startWorker with host)`;
}
