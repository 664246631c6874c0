import { expect, it } from 'vitest';
import { unreachableAddress } from '../../../core/util/hosts.ts';

const OWN = (): string[] => ['127.0.0.1', '10.77.0.1', 'fd00::1'];

it.each([
  ['tls://127.0.0.1:1', 'tls://10.77.0.2:5'],
  ['tcp://localhost:1', 'tcp://10.77.0.2:5'],
  ['tcp://[::1]:1', 'tcp://[fd00::2]:5'],
])('%s is of no use to others than a worker that comes from %s', (address, peer) => {
  const host = peer.slice('tcp://'.length, -':5'.length);
  expect(unreachableAddress(address, peer, OWN)).toContain(
    `announces the address ${address}, which only its own machine reaches, and it has connected from ${host}; start it with --host`,
  );
});

it.each([
  ['tls://127.0.0.1:1', 'tls://127.0.0.1:5'],
  ['tls://127.0.0.1:1', 'tls://10.77.0.1:5'],
  ['tls://[::1]:1', 'tls://[fd00::1]:5'],
  ['tls://10.77.0.2:1', 'tls://10.77.0.2:5'],
  ['inmemory://local:1', 'inmemory://peer:5'],
  ['tcp://127.0.0.1:1', 'plugin:dask'],
])('%s may be right for a worker that comes from %s', (address, peer) => {
  expect(unreachableAddress(address, peer, OWN)).toBeUndefined();
});
