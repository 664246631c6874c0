import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { encode } from '@msgpack/msgpack';

import type { Attack } from './attack.ts';
import { namesInSources } from './names-in-sources.ts';
import { type Random, type SchemaValues } from './schema-values.ts';

/** Who speaks to Dask's port: without an introduction, by requests, or as a client or worker. */
export type DaskAttacker = 'stranger' | 'caller' | 'client' | 'worker';

const FRAMES_OF_CONNECTION = 25;

/** Operations that a peer may use to end the scheduler, or innocent work, or to write files. */
const ENDING = /^(terminate|close|shutdown|restart|retire|dump|unregister|broadcast|run|remove)/;

const FOLDERS = ['adapters/dask'];
const OPERATIONS = namesInSources(FOLDERS, /^\s+(?:case )?'?([a-z]+(?:[_-][a-z]+)*)'?\s?[:(]/gm)
  .filter((name) => !ENDING.test(name))
  .concat('register-client', 'register-worker', 'heartbeat_worker', 'update-graph');
const FIELDS = namesInSources(FOLDERS, /[{,[]\s*'?([a-z]+(?:_[a-z]+)*)'?\s*[,:}\]]/g);

/** The layout of a message: its length, the number of frames, their lengths, the frames. */
function packed(frames: readonly Uint8Array[], random: Random): Buffer {
  const head = Buffer.alloc(16 + 8 * frames.length);
  let total = 8 + 8 * frames.length;
  for (const [index, { length }] of frames.entries()) {
    head.writeBigUInt64LE(BigInt(length), 16 + 8 * index);
    total += length;
  }
  head.writeBigUInt64LE(BigInt(total), 0);
  head.writeBigUInt64LE(BigInt(frames.length), 8);
  if (random.chance(30)) head[random.below(head.length)] = random.below(256);
  if (random.chance(60)) head.writeBigUInt64LE(2n ** BigInt(random.below(64)), 8);
  return Buffer.concat([head, ...frames]);
}

class DaskPeer {
  isClosed = false;

  private constructor(readonly socket: Socket) {
    socket.on('error', () => undefined).on('close', () => (this.isClosed = true));
    socket.resume();
  }

  static async connect(address: string): Promise<DaskPeer> {
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    return new DaskPeer(socket);
  }

  write(message: unknown, random: Random): void {
    const bytes = encode(message, { ignoreUndefined: true, maxDepth: 1000 });
    const wrong = random.below(14);
    if (wrong === 0) bytes[random.below(bytes.length)] = random.below(256);
    const cut = wrong === 1 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
    const more = wrong === 2 ? [bytes, new Uint8Array(0), bytes] : [];
    this.socket.write(packed([cut, ...more], random));
  }
}

const HANDSHAKE = { compression: null, python: [3, 11, 2], 'pickle-protocol': 5 };

/** Sends hostile messages to Dask's port, one connection after the other. */
export async function attackDask(
  address: string,
  attacker: DaskAttacker,
  frames: number,
  tools: { readonly random: Random; readonly values: SchemaValues },
  answerMs: () => Promise<number>,
): Promise<Attack> {
  const { random, values } = tools;
  const done: Attack = { frames: 0, connections: 0, blockedMs: 0 };
  const message = (): Record<string, unknown> => {
    const fields: Record<string, unknown> = { op: random.one(OPERATIONS) };
    if (attacker === 'caller') fields['reply'] = !random.chance(4);
    for (let count = random.below(8); count > 0; count--) {
      fields[random.one(FIELDS)] = random.chance(3) ? values.garbage() : values.plausible();
    }
    fields['stimulus_id'] = random.chance(10) ? values.garbage() : 'hostile';
    return fields;
  };
  while (done.frames < frames) {
    done.connections++;
    const peer = await DaskPeer.connect(address);
    const name = `hostile-${done.connections}-${random.below(1e9)}`;
    if (attacker !== 'stranger') peer.write(HANDSHAKE, SOUND);
    if (attacker === 'client') peer.write({ ...CLIENT, client: name }, SOUND);
    const port = 1 + random.below(60_000);
    if (attacker === 'worker') peer.write({ ...WORKER, address: `tcp://127.0.0.9:${port}` }, SOUND);
    for (let count = 0; count < FRAMES_OF_CONNECTION && !peer.isClosed; count++) {
      done.frames++;
      const isStream = attacker === 'client' || attacker === 'worker';
      peer.write(random.chance(15) ? values.garbage() : isStream ? [message()] : message(), random);
      if (random.chance(4)) await new Promise((resolve) => setImmediate(resolve));
    }
    done.blockedMs = Math.max(done.blockedMs, await answerMs());
    peer.socket.destroy();
  }
  return done;
}

/** Changes nothing. */
const SOUND = {
  below: () => 13,
  chance: () => false,
  one: <T>(all: readonly T[]) => all[0],
} as never;

const versions = { packages: { distributed: '2026.8.0' } };
const CLIENT = { op: 'register-client', reply: false, versions };
const WORKER = {
  op: 'register-worker',
  reply: false,
  status: 'paused',
  keys: [],
  nthreads: 1,
  name: null,
  now: 0,
  resources: {},
  memory_limit: 0,
  local_directory: '/',
  services: {},
  nanny: null,
  pid: 1,
  versions,
  metrics: {},
  extra: {},
  server_id: 'hostile',
  stimulus_id: 'hostile',
};
