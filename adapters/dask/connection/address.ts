import { YardmasterError } from '../../../core/api/index.ts';

/** Where a Dask peer listens. */
interface DaskAddress {
  readonly scheme: 'tcp' | 'tls';
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const FORM =
  /^(?:(?<scheme>[a-z]+):\/\/)?(?:\[(?<v6>[^\]]+)\]|(?<name>[^:/[\]]*)):(?<port>\d{1,5})\/?$/;

/**
 * Reads `tcp://127.0.0.1:8786`, `tls://[::1]:8786`, `localhost:8786` (then it is tcp).
 * @throws YardmasterError `ERR_CONNECT` when it has another form
 */
export function parseDaskAddress(address: string): DaskAddress {
  const groups = FORM.exec(address)?.groups;
  const scheme = groups?.['scheme'] ?? 'tcp';
  const port = Number(groups?.['port'] ?? NaN);
  if ((scheme !== 'tcp' && scheme !== 'tls') || groups === undefined || !(port <= 65_535)) {
    throw new YardmasterError(
      'ERR_CONNECT',
      `${JSON.stringify(address)} is not an address of the form tcp://host:port or tls://host:port`,
      { address },
    );
  }
  return { scheme, host: groups['v6'] ?? groups['name'] ?? '', port };
}

/** The form that Dask itself uses. IPv4 addresses that come as IPv6 get their usual form. */
export function formatDaskAddress({ scheme, host, port }: DaskAddress): string {
  const plain = host.startsWith('::ffff:') && host.includes('.') ? host.slice(7) : host;
  return `${scheme}://${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}
