/** Measurements that workers make of the machine that they run on. Workers import this module. */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentRun, defineTasks } from '../tasks/index.ts';

/** Bytes and the seconds that they took. */
export interface Moved {
  readonly nbytes: number;
  readonly seconds: number;
}

/** Milliseconds after which the worker is let do something else. */
const SLICE_MS = 10;

export const { copyInMemory, writeToDisk, fetchFromPeer } = defineTasks(import.meta.url, {
  /** Copies blocks of `nbytes` bytes for `durationMs`. */
  async copyInMemory(nbytes: number, durationMs: number): Promise<Moved> {
    const from = new Uint8Array(nbytes).fill(1);
    const to = new Uint8Array(nbytes);
    return repeatedly(durationMs, nbytes, () => {
      to.set(from);
      return Promise.resolve();
    });
  },

  /**
   * Writes blocks of `nbytes` bytes to a file in the folder for temporary files for `durationMs`.
   */
  async writeToDisk(nbytes: number, durationMs: number): Promise<Moved> {
    const path = join(tmpdir(), `yardmaster-benchmark-${randomUUID()}`);
    const file = await open(path, 'wx');
    try {
      const block = new Uint8Array(nbytes).fill(1);
      return await repeatedly(durationMs, nbytes, async () => {
        await file.write(block, 0, nbytes, 0);
        await file.datasync();
      });
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  },

  /** Fetches blocks of `nbytes` bytes from another worker for `durationMs`. */
  async fetchFromPeer(peer: string, nbytes: number, durationMs: number): Promise<Moved> {
    const { surroundings } = currentRun('fetchFromPeer()');
    if (surroundings === undefined) throw new Error('this worker knows of no cluster');
    const { Peers } = await import('./peers.ts');
    const peers = new Peers({ ...surroundings, timeoutMs: 10_000 });
    try {
      const channel = await peers.to(peer);
      return await repeatedly(durationMs, nbytes, async () => {
        await channel.request('send-bytes', { nbytes }, 60_000);
      });
    } finally {
      await peers.close();
    }
  },
});

/** At least once; the first time, which warms up, is not counted unless it is the only one. */
async function repeatedly(
  durationMs: number,
  nbytes: number,
  move: () => Promise<void>,
): Promise<Moved> {
  const beginMs = performance.now();
  await move();
  const warmMs = performance.now();
  if (warmMs - beginMs >= durationMs) return { nbytes, seconds: (warmMs - beginMs) / 1000 };
  let sliceMs = warmMs;
  let moved = 0;
  let nowMs = warmMs;
  while (nowMs - beginMs < durationMs) {
    await move();
    moved += nbytes;
    nowMs = performance.now();
    if (nowMs - sliceMs < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sliceMs = performance.now();
  }
  return { nbytes: moved, seconds: Math.max(nowMs - warmMs, 0.001) / 1000 };
}
