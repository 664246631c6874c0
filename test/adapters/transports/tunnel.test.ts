import { MessageChannel } from 'node:worker_threads';
import { describe, expect, it, test } from 'vitest';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport, transportConformance } from '../../../adapters/testing/index.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import { relayConnection, TunnelTransport } from '../../../adapters/transports/tunnel.ts';
import type { ConnectionHandlers, Transport } from '../../../core/api/index.ts';
import { CLAUSE_MS } from './harness.ts';

/** Listens as the other one does, and connects through a tunnel. */
function through(inner: Transport): Transport {
  const tunnel = new TunnelTransport(inner.scheme, (request) => relayConnection(request, [inner]));
  return {
    scheme: inner.scheme,
    listen: (address, accept) => inner.listen(address, accept),
    connect: (address, open, options) => tunnel.connect(address, open, options),
  };
}

transportConformance(
  'a tunnel to tcp',
  () => ({
    transport: through(new TcpTransport(new SystemClock())),
    listenAddress: 'tcp://127.0.0.1:0',
    vacantAddress: 'tcp://127.0.0.1:1',
    clauseMs: CLAUSE_MS,
  }),
  { describe, it },
);

transportConformance(
  'a tunnel to the in-memory network',
  () => ({
    transport: through(new InMemoryTransport(new SystemClock())),
    listenAddress: 'inmemory://node:0',
    vacantAddress: 'inmemory://vacant:1',
    clauseMs: CLAUSE_MS,
  }),
  { describe, it },
);

const DEAF: ConnectionHandlers = { onMessages: () => undefined, onClose: () => undefined };

describe('a tunnel', () => {
  test('whose thread ends takes its connection along', async () => {
    const inner = new InMemoryTransport(new SystemClock());
    const closed = new Promise<Error | undefined>((resolve) => {
      void inner.listen('inmemory://node:1', () => ({ ...DEAF, onClose: resolve }));
    });
    const { port1, port2 } = new MessageChannel();
    const opened = new Promise((resolve) => port1.once('message', resolve));
    relayConnection(
      { address: 'inmemory://node:1', role: 'client', timeoutMs: 1000, port: port2 },
      [inner],
    );
    expect(await opened).toMatchObject({ op: 'opened' });
    port1.close();
    expect(await closed).toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('whose thread ends while it connects takes its connection along', async () => {
    const inner = new InMemoryTransport(new SystemClock());
    const closed = new Promise<Error | undefined>((resolve) => {
      void inner.listen('inmemory://node:2', () => ({ ...DEAF, onClose: resolve }));
    });
    const { port1, port2 } = new MessageChannel();
    const portClosed = new Promise((resolve) => port2.once('close', resolve));
    const late: Transport = {
      scheme: inner.scheme,
      listen: (address, accept) => inner.listen(address, accept),
      connect: async (...parameters) => {
        await portClosed;
        return inner.connect(...parameters);
      },
    };
    const address = 'inmemory://node:2';
    relayConnection({ address, role: 'client', timeoutMs: 1000, port: port2 }, [late]);
    port1.close();
    expect(await closed).toMatchObject({ code: 'ERR_CLOSED' });
  });

  test('to what the worker cannot reach fails, and names what it can', async () => {
    const inner = new InMemoryTransport(new SystemClock());
    const tunnel = new TunnelTransport('quic', (request) => relayConnection(request, [inner]));
    await expect(tunnel.connect('quic://x:1', () => DEAF)).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('inmemory://') as string,
    });
    await expect(tunnel.listen('quic://x:0')).rejects.toMatchObject({ code: 'ERR_CONNECT' });
  });
});
