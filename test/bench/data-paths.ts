/** What moving results costs a worker: to another process, to the disk and back. */
import { LocalCluster } from '../../adapters/app/index.ts';
import { SpillFolder } from '../../adapters/stores/index.ts';
import { fill } from './no-op.ts';
import { median, type Result, round } from './side-by-side.ts';

const MIB = 1024 * 1024;

/** A number of results of a number of bytes. */
export interface DataShape {
  readonly count: number;
  readonly nbytes: number;
}

/**
 * Copies results that are on one worker process to the other, over TCP on this machine. Wall time
 * from the request to the confirmation of the last copy; the first round is not measured.
 */
export async function measureFetch({ count, nbytes }: DataShape, rounds: number): Promise<Result> {
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, threads: 1 });
  try {
    const client = await cluster.client();
    const measured: Result[] = [];
    for (let turn = 0; turn <= rounds; turn++) {
      const seeds = Array.from({ length: count }, (_, index) => turn * count + index);
      const sizes = seeds.map(() => nbytes);
      const futures = client.with({ workers: ['worker-0'], pure: false }).map(fill, sizes, seeds);
      await Promise.all(futures.map((future) => future.settled()));
      const startMs = performance.now();
      await client.replicate(futures, { n: 2 });
      const seconds = (performance.now() - startMs) / 1000;
      if (turn > 0) measured.push(rates({ count, nbytes }, seconds));
      for (const future of futures) future.release();
    }
    return median(measured, 'mibPerS');
  } finally {
    await cluster.close();
  }
}

/** Writes results to files as a worker over its memory target does, and reads them back. */
export function measureSpill(
  { count, nbytes }: DataShape,
  rounds: number,
): { readonly write: Result; readonly read: Result } {
  const values = Array.from({ length: count }, (_, index) => new Uint8Array(nbytes).fill(index));
  const written: Result[] = [];
  const read: Result[] = [];
  for (let turn = 0; turn < rounds; turn++) {
    const folder = new SpillFolder();
    try {
      written.push(
        timed({ count, nbytes }, () => {
          for (const [index, value] of values.entries()) folder.write(`result-${index}`, value);
        }),
      );
      read.push(
        timed({ count, nbytes }, () => {
          for (const index of values.keys()) check(folder.read(`result-${index}`), index, nbytes);
        }),
      );
    } finally {
      folder.close();
    }
  }
  return { write: median(written, 'mibPerS'), read: median(read, 'mibPerS') };
}

function timed(shape: DataShape, run: () => void): Result {
  const startMs = performance.now();
  run();
  return rates(shape, (performance.now() - startMs) / 1000);
}

function rates({ count, nbytes }: DataShape, seconds: number): Result {
  return {
    count,
    mibEach: round(nbytes / MIB),
    mibPerS: Math.round((count * nbytes) / MIB / seconds),
    msEach: round((seconds / count) * 1000),
  };
}

function check(value: Uint8Array, seed: number, nbytes: number): void {
  if (value.byteLength === nbytes && value[nbytes - 1] === seed % 256) return;
  throw new Error(`the result ${seed} came back with ${value.byteLength} bytes`);
}
