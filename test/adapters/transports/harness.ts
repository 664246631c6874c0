import { createServer, type AddressInfo } from 'node:net';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { SocketProxy, type TransportHarness } from '../../../adapters/testing/index.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';

const HOST = '127.0.0.1';
const FRAME_BYTES_MAX = 4096;
/** Enough for a clause in real time on a busy machine. */
export const CLAUSE_MS = 60_000;

/** TCP with every part that the clauses can use, and time enough on a busy machine. */
export async function tcpHarness(clauseMs = CLAUSE_MS): Promise<TransportHarness> {
  const clock = new SystemClock();
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, HOST, resolve));
  const options = { closeTimeoutMs: 1000 };
  return {
    transport: new TcpTransport(clock, options),
    listenAddress: `tcp://${HOST}:0`,
    vacantAddress: `tcp://${HOST}:1`,
    silentAddress: `tcp://${HOST}:${(silent.address() as AddressInfo).port}`,
    small: {
      transport: new TcpTransport(clock, { ...options, frameBytesMax: FRAME_BYTES_MAX }),
      frameBytesMax: FRAME_BYTES_MAX,
      isReachable: true,
    },
    proxy: async (address) => {
      const target = { host: HOST, port: Number(new URL(address).port) };
      const proxy = await SocketProxy.start(target, { host: HOST, port: 0 });
      return Object.assign(proxy, { address: `tcp://${HOST}:${proxy.port}` });
    },
    close: () => void silent.close(),
    clauseMs,
  };
}
