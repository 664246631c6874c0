import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { encode } from '@msgpack/msgpack';

import { PROTOCOL } from '../../core/api/index.ts';
import { Random, type Schema, SchemaValues } from './schema-values.ts';
import { WirePeer } from './wire-peer.ts';

const require = createRequire(import.meta.url);
const { definitions } = require('yardmaster/schema/messages.schema.json') as {
  readonly definitions: Readonly<Record<string, Schema>>;
};

/** Who attacks: a peer that says no hello, or one that was let in. */
export type Attacker = 'stranger' | 'client' | 'worker';

/** What was done. */
export interface Attack {
  frames: number;
  connections: number;
  /** Longest time for which an innocent request found the process busy. */
  blockedMs: number;
}

/** Frames on one connection, if it lives as long. */
const FRAMES_OF_CONNECTION = 25;

/** What a peer of this kind can say, from the schema: a new message is attacked as soon as it is there. */
function messagesOf(attacker: Attacker): readonly string[] {
  const names = Object.keys(definitions);
  const kinds =
    attacker === 'stranger' ? ['client message', 'worker message'] : [`${attacker} message`];
  return names.filter((name) => ['request', ...kinds].some((kind) => name.startsWith(`${kind} `)));
}

/** What hostile values are made with. */
export function toolsOf(seed: number): { readonly random: Random; readonly values: SchemaValues } {
  const random = new Random(seed);
  return { random, values: new SchemaValues(definitions, random) };
}

/** Sends hostile frames to a scheduler, one connection after the other. */
export async function attack(
  address: string,
  attacker: Attacker,
  frames: number,
  seed: number,
  answer: () => Promise<number>,
): Promise<Attack> {
  const { random, values } = toolsOf(seed);
  const names = messagesOf(attacker);
  const done: Attack = { frames: 0, connections: 0, blockedMs: 0 };
  const commands = await commandsOf(address);
  while (done.frames < frames) {
    done.connections++;
    const peer = await WirePeer.connect(address);
    if (attacker !== 'stranger') await enter(peer, attacker, `${seed}-${done.connections}`);
    for (let count = 0; count < FRAMES_OF_CONNECTION && !peer.isClosed; count++) {
      done.frames++;
      peer.write(frameOf(messageOf(random.one(names), values, random, commands), random));
      if (random.chance(4)) await turn();
    }
    done.blockedMs = Math.max(done.blockedMs, await answer());
    peer.socket.destroy();
  }
  return done;
}

function messageOf(
  name: string,
  values: SchemaValues,
  random: Random,
  commands: readonly string[],
): unknown {
  const op = name.slice(name.lastIndexOf(' ') + 1);
  if (!name.startsWith('request ')) return { ...values.hostile(name), op };
  const parameters = values.hostile(name);
  if (op === 'command' && !random.chance(5)) {
    parameters['command'] = random.one(commands);
    parameters['parameters'] = values.hostile(random.one(Object.keys(definitions)));
  }
  const id = random.chance(20) ? values.garbage() : random.below(1000);
  return { op: random.chance(20) ? 'reply' : 'request', id, method: op, parameters };
}

function frameOf(message: unknown, random: Random): Uint8Array {
  const bytes = encode([message], { ignoreUndefined: true, maxDepth: 1000 });
  switch (random.below(12)) {
    case 0:
      bytes[random.below(bytes.length)] = random.below(256);
      return bytes;
    case 1:
      return bytes.subarray(0, random.below(bytes.length));
    default:
      return bytes;
  }
}

async function enter(peer: WirePeer, role: 'client' | 'worker', name: string): Promise<void> {
  await peer.request('hello', { protocol: PROTOCOL, role, version: '0' });
  if (role === 'client') await peer.request('register-client', { client: `hostile-${name}` });
  else {
    const identity = {
      address: `tcp://127.0.0.1:1/${name}`,
      serverId: name,
      name: `hostile-${name}`,
      host: '127.0.0.1',
      threadCount: 1,
      memoryLimitBytes: 0,
      resources: { hostile: 1 },
    };
    // Innocent tasks do not run there.
    await peer.request('register-worker', { identity, status: 'paused' });
  }
}

/** Commands that exist, so that their parameters are attacked; those that end innocent work are left out. */
async function commandsOf(address: string): Promise<readonly string[]> {
  const peer = await (await WirePeer.connect(address)).enter('looks');
  const reply = await peer.request('command', { command: 'commands', parameters: {} });
  peer.socket.destroy();
  const found = JSON.stringify(reply?.['value']).match(/[a-z][a-zA-Z]*(?:[.-][a-zA-Z]+)*/g) ?? [];
  return [...new Set(found)].filter((name) => !/restart|retire|close|shutdown/i.test(name));
}

/** Milliseconds for an innocent question. */
export async function answerMs(address: string): Promise<number> {
  const startMs = performance.now();
  const peer = await WirePeer.connect(address);
  const reply = await peer.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
  peer.socket.destroy();
  if (reply?.['ok'] !== true) throw new Error('the scheduler does not answer any more');
  return performance.now() - startMs;
}

/** Lets the event loop read. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * How long the process was busy at most while it was asked: neither longer than the answer took, nor than its
 * first thread has computed since it was last asked. So other processes of the machine do not count.
 */
export function busyMs(pid: number, ask: () => Promise<number>): () => Promise<number> {
  let before = computedMs(pid);
  return async () => {
    const tookMs = await ask();
    const now = computedMs(pid);
    const ranMs = now - before;
    before = now;
    return Math.min(tookMs, ranMs);
  };
}

/** Milliseconds for which the first thread of a process has run. */
function computedMs(pid: number): number {
  const [nanoseconds = '0'] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match?.[1] ?? 0) * 1024;
}
