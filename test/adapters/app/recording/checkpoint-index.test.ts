import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  checkpointBefore,
  checkpointsOf,
  readRecording,
} from '../../../../adapters/app/read-log.ts';
import { openPast, replayRecording } from '../../../../adapters/app/past.ts';
import type { LogFrame } from '../../../../core/log/format.ts';
import type { ClusterState } from '../../../../core/state/cluster.ts';
import { digestOfState } from '../../../../core/log/digest.ts';

/** A recording of random stimuli, with several checkpoints. */
const FILE = new URL('../../../histories/checkpoints.ylog', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-index-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function framesOf(file: string): Promise<LogFrame[]> {
  const frames: LogFrame[] = [];
  for await (const frame of readRecording(file)) frames.push(frame);
  return frames;
}

describe('a recording with checkpoints', () => {
  it('is replayed from each of them to its end with the same decisions', async () => {
    const checkpoints = checkpointsOf(FILE);
    expect(checkpoints.length).toBeGreaterThan(2);
    const all = await replayRecording(FILE);
    // It begins with the first.
    for (const from of checkpoints.slice(1)) {
      const result = await replayRecording(FILE, { from, validate: true });
      expect(result).toMatchObject({ difference: undefined, damage: undefined, isComplete: true });
      expect([result.lastFrame, result.transitions]).toEqual([all.lastFrame, all.transitions]);
      expect(result.stimuli).toBeLessThan(all.stimuli);
    }
  });

  it('has a nearest checkpoint for each frame, which is complete before it', () => {
    const [first, second] = checkpointsOf(FILE);
    expect(checkpointBefore(FILE, first!.endNumber - 1)).toBeUndefined();
    expect(checkpointBefore(FILE, first!.endNumber)).toEqual(first);
    expect(checkpointBefore(FILE, second!.endNumber - 1)).toEqual(first);
    expect(checkpointBefore(FILE, Infinity)).toEqual(checkpointsOf(FILE).at(-1));
  });

  it('shows at each moment what a replay from the start comes to, whichever way it is reached', async () => {
    // The last frame of a history has no time of its own.
    const file = join(folder, 'open.ylog');
    const end = (await framesOf(FILE)).at(-1)!;
    writeFileSync(file, readFileSync(FILE).subarray(0, end.offset));
    const times: number[] = [];
    const digests = new Map<number, string>();
    await replayRecording(file, {
      onFrame: ({ timeMs }, { cluster }) => {
        times.push(timeMs);
        digests.set(timeMs, digestOfState(cluster));
      },
    });
    const past = await openPast(file);
    const moments = times.filter((_, index) => index % 40 === 0);
    for (const atMs of [...moments.toReversed(), ...moments, moments[0]!, moments.at(-1)!]) {
      const { cluster } = await past.at(atMs, false);
      expect(digestOfState(cluster as unknown as ClusterState)).toBe(digests.get(atMs));
    }
  });

  it('has no checkpoint where it was cut off or damaged before the end of it', async () => {
    const bytes = readFileSync(FILE);
    const [first] = checkpointsOf(FILE);
    const file = join(folder, 'cut.ylog');
    const frames = await framesOf(FILE);
    const endOffset = frames[first!.endNumber + 1]!.offset;
    for (const at of [0, 3, 16, 100, first!.offset + 1, endOffset - 1]) {
      writeFileSync(file, bytes.subarray(0, at));
      expect(checkpointsOf(file)).toEqual([]);
    }
    writeFileSync(file, bytes.subarray(0, endOffset));
    expect(checkpointsOf(file)).toEqual([{ ...first, file }]);
    const damaged = Buffer.from(bytes);
    damaged.writeUInt32LE(0xffffffff, first!.offset);
    writeFileSync(file, damaged);
    expect(checkpointsOf(file)).toEqual([]);
  });
});
