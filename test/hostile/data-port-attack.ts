import { encode } from '@msgpack/msgpack';

import { PROTOCOL } from '../../core/api/index.ts';
import type { Attack } from './attack.ts';
import { namesInSources } from './names-in-sources.ts';
import type { Random, SchemaValues } from './schema-values.ts';
import { WirePeer } from './wire-peer.ts';

const FRAMES_OF_CONNECTION = 25;
const METHODS = namesInSources(['core/worker-host'], /case '([a-z-]+)'/g);
const FIELDS = ['keys', 'values', 'nbytes', 'handle', 'handles', 'inParts', 'mayBeBusy', 'actor'];

/** Sends hostile requests to a worker's data port, one connection after the other. */
export async function attackDataPort(
  address: string,
  frames: number,
  { random, values }: { readonly random: Random; readonly values: SchemaValues },
  answer: () => Promise<number>,
): Promise<Attack> {
  const done: Attack = { frames: 0, connections: 0, blockedMs: 0 };
  while (done.frames < frames) {
    done.connections++;
    const peer = await WirePeer.connect(address);
    if (!random.chance(5)) await hello(peer);
    for (let count = 0; count < FRAMES_OF_CONNECTION && !peer.isClosed; count++) {
      done.frames++;
      const bytes = encode([request(random, values)], { ignoreUndefined: true, maxDepth: 1000 });
      if (random.chance(12)) bytes[random.below(bytes.length)] = random.below(256);
      peer.write(random.chance(12) ? bytes.subarray(0, random.below(bytes.length)) : bytes);
      if (random.chance(4)) await new Promise((resolve) => setImmediate(resolve));
    }
    done.blockedMs = Math.max(done.blockedMs, await answer());
    peer.socket.destroy();
  }
  return done;
}

function request(random: Random, values: SchemaValues): unknown {
  const parameters: Record<string, unknown> = {};
  for (const field of FIELDS)
    if (random.chance(2)) parameters[field] = valueOf(field, random, values);
  const method = random.chance(15) ? values.garbage() : random.one(METHODS);
  // A measurement of the way may be 128 MB each time.
  if (method === 'send-bytes') parameters['nbytes'] = random.chance(2) ? 1000 : values.garbage();
  if (random.chance(10)) return { op: 'drop-parts', ...parameters };
  const id = random.chance(20) ? values.garbage() : random.below(1000);
  return {
    op: 'request',
    id,
    method,
    parameters: random.chance(15) ? values.garbage() : parameters,
  };
}

function valueOf(field: string, random: Random, values: SchemaValues): unknown {
  if (random.chance(4)) return values.garbage();
  const keys = Array.from({ length: random.below(4) }, () => `hostile-${random.below(5)}`);
  if (field === 'keys') return keys;
  return field === 'values'
    ? keys.map(() => new Uint8Array(random.below(100)))
    : values.plausible();
}

async function hello(peer: WirePeer): Promise<boolean> {
  const reply = await peer.request('hello', { protocol: PROTOCOL, role: 'peer', version: '0' });
  return reply?.['ok'] === true;
}

/** Milliseconds for an innocent question. */
export async function dataPortMs(address: string): Promise<number> {
  const startMs = performance.now();
  const peer = await WirePeer.connect(address);
  if (!(await hello(peer))) throw new Error('the worker does not answer any more');
  peer.socket.destroy();
  return performance.now() - startMs;
}
