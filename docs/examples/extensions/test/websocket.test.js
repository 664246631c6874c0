import { createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { SocketProxy, SystemClock, transportConformance } from 'yardmaster/testing';
import websocket from '../websocket.js';

const clock = new SystemClock();
const times = { frameBytesMax: 2 ** 30, connectTimeoutMs: 10_000, closeTimeoutMs: 200 };
const silent = createServer(() => undefined);
await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
after(() => silent.close());

transportConformance(
  'the transport over WebSockets',
  () => {
    const transport = websocket.create({ clock }, times);
    const frameBytesMax = 4096;
    return {
      transport,
      listenAddress: 'ws://127.0.0.1:0',
      vacantAddress: 'ws://127.0.0.1:1',
      silentAddress: `ws://127.0.0.1:${silent.address().port}`,
      small: {
        transport: websocket.create({ clock }, { ...times, frameBytesMax }),
        frameBytesMax,
        isReachable: true,
      },
      proxy: async (address) => {
        const target = { host: '127.0.0.1', port: Number(new URL(address).port) };
        const proxy = await SocketProxy.start(target, { host: '127.0.0.1', port: 0 });
        return Object.assign(proxy, { address: `ws://127.0.0.1:${proxy.port}` });
      },
    };
  },
  { describe, it },
);
