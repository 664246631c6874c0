import { beforeEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { ReleasedResults } from '../../../core/worker-host/worker-memory.ts';

const MIB = 1024 * 1024;

describe('results that a worker without a memory limit releases', () => {
  let clock: VirtualClock;
  let released: ReleasedResults;
  let collected: string[];
  /** Milliseconds that a collection of everything takes. */
  let collectionMs: number;
  beforeEach(() => {
    clock = new VirtualClock();
    collected = [];
    collectionMs = 0;
    const collect = {
      collectYoungGarbage: () => collected.push('young'),
      collectGarbage: () => {
        collected.push('all');
        clock.advance(collectionMs);
      },
    };
    released = new ReleasedResults(
      collect,
      { collectGarbage: () => collected.push('threads') },
      clock,
    );
  });

  async function release(...sizes: readonly number[]): Promise<string[]> {
    for (const nbytes of sizes) released.note(nbytes);
    await Promise.resolve();
    return collected.splice(0);
  }

  test('are collected while they are young, and from time to time with all else', async () => {
    expect(await release(63 * MIB)).toEqual([]);
    expect(await release(MIB)).toEqual(['young']);
    expect(await release(100 * MIB)).toEqual(['young']);
    expect(await release(50 * MIB)).toEqual([]);
    expect(await release(50 * MIB)).toEqual(['threads', 'all']);
    expect(await release(64 * MIB)).toEqual(['young']);
  });

  test('are collected once for all that one event releases', async () => {
    expect(await release(100 * MIB, 100 * MIB, 100 * MIB)).toEqual(['threads', 'all']);
  });

  test('are not collected for small results, which the engine counts', async () => {
    const small = Array.from({ length: 3000 }, () => 63 * 1024);
    expect(await release(...small)).toEqual([]);
  });

  test('are not collected so often that this would take a tenth of the time', async () => {
    collectionMs = 30;
    expect(await release(300 * MIB)).toEqual(['threads', 'all']);
    expect(await release(300 * MIB)).toEqual(['young']);
    clock.advance(300);
    expect(await release(64 * MIB)).toEqual(['threads', 'all']);
  });
});
