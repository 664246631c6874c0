import { expect, test } from 'vitest';

import { Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { releaseFrames } from '../../../../adapters/dask/wire/comm.ts';
import { HandClock } from '../../../kit/hand-clock.ts';

const HEADER = new Uint8Array(1);

test('large frames that were passed on lose their memory at once, one in each turn', () => {
  const clock = new HandClock();
  const frames = [new Uint8Array(100_000), new Uint8Array(1_000_000)];
  releaseFrames([null, new Opaque('serialized', HEADER, frames)], clock);
  expect(frames.map(({ length }) => length)).toEqual([100_000, 0]);
  clock.turn();
  expect(frames.map(({ length }) => length)).toEqual([0, 0]);
});

test('frames that are small, or a part of other memory, keep it', () => {
  const shared = new Uint8Array(1_000_000);
  const frames = [new Uint8Array(100), shared.subarray(0, 900_000)];
  releaseFrames([new Opaque('pickled', HEADER, frames)], new HandClock());
  expect(frames.map(({ length }) => length)).toEqual([100, 900_000]);
});
