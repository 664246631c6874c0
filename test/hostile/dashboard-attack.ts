import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as passed } from 'node:timers/promises';

import type { Attack } from './attack.ts';
import { namesInSources } from './names-in-sources.ts';
import type { Random, SchemaValues } from './schema-values.ts';

const ROUTES = namesInSources(['adapters/dashboard'], /app\.(?:get|post)[^'\n]*'(\/[^']*)'/g);
const FIELDS = namesInSources(['adapters/dashboard'], /textIn\([^']*'([a-z]+)'/g);
const REQUESTS_OF_ROUND = 25;

/** Routes that change innocent work when they are asked properly. */
const CHANGING = /restart|retire|policy|record/;

/** Sends hostile requests and WebSocket frames to the dashboard, one connection after the other. */
export async function attackDashboard(
  url: string,
  frames: number,
  { random, values }: { readonly random: Random; readonly values: SchemaValues },
  answerMs: () => Promise<number>,
): Promise<Attack> {
  const done: Attack = { frames: 0, connections: 0, blockedMs: 0 };
  while (done.frames < frames) {
    for (let count = 0; count < REQUESTS_OF_ROUND; count++) {
      done.connections++;
      const socket = await open(url);
      if (random.chance(3)) done.frames += await speak(socket, url, random, values);
      else {
        done.frames++;
        socket.write(requestText(url, random, values));
      }
      await Promise.race([event(socket, 'close'), passed(5)]);
      socket.destroy();
    }
    done.blockedMs = Math.max(done.blockedMs, await answerMs());
  }
  return done;
}

/** Unlike `once` of Node it does not reject when the connection breaks. */
function event(socket: Socket, name: string): Promise<void> {
  return new Promise((resolve) => socket.once(name, () => resolve()));
}

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  return socket;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return JSON.stringify({ value });
}

function requestText(url: string, random: Random, values: SchemaValues): string {
  const { host } = new URL(url);
  const method = random.one(['GET', 'GET', 'GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'G\u0000T']);
  const route = random.one(ROUTES.filter((path) => method === 'GET' || !CHANGING.test(path)));
  const query = FIELDS.filter(() => random.chance(2)).map((name) => {
    const value = textOf(random.chance(2) ? values.plausible() : values.garbage()).slice(0, 20_000);
    return `${name}=${random.chance(5) ? value : encodeURIComponent(value.replace(/\p{Surrogate}/gu, '?'))}`;
  });
  const path = random.chance(10) ? `/${textOf(values.garbage()).slice(0, 5000)}` : route;
  const headers = [
    `Host: ${random.chance(8) ? textOf(values.garbage()) : host}`,
    ...(random.chance(4) ? [`Cookie: ${textOf(values.garbage())}`] : []),
    ...(random.chance(4) ? [`Origin: ${textOf(values.garbage())}`] : []),
    ...(random.chance(4) ? [`Content-Length: ${textOf(values.garbage())}`] : []),
    ...(random.chance(8) ? ['Transfer-Encoding: chunked'] : []),
    ...(random.chance(8) ? [`${textOf(values.garbage())}: x`] : []),
  ];
  const body = random.chance(4) ? textOf(values.garbage()) : '';
  return `${method} ${path}?${query.join('&')} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`;
}

/** Opens the feed, and sends frames that no browser sends. */
async function speak(
  socket: Socket,
  url: string,
  random: Random,
  values: SchemaValues,
): Promise<number> {
  const key = randomBytes(16).toString('base64');
  socket.write(
    `GET /feed HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  await Promise.race([event(socket, 'data'), event(socket, 'close')]);
  const count = 1 + random.below(10);
  for (let sent = 0; sent < count && !socket.destroyed; sent++) {
    const payload = Buffer.from(
      textOf(random.chance(3) ? values.garbage() : { op: values.plausible() }),
    );
    const first = random.chance(3) ? random.below(256) : 0x81;
    const length = Buffer.alloc(9);
    length[0] = random.chance(10) ? 127 : 0x80 | 127;
    length.writeBigUInt64BE(random.chance(10) ? 2n ** 63n - 1n : BigInt(payload.length), 1);
    const mask = Buffer.alloc(4);
    socket.write(Buffer.concat([Buffer.from([first]), length, mask, payload]));
  }
  return count;
}
