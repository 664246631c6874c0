import { copyInMemory, fetchFromPeer, type Moved, writeToDisk } from '../peers/hardware-tasks.ts';
import type { WorkerRunner } from './cluster-access.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** The options of a benchmark of the hardware. */
export interface BenchmarkOptions {
  /** Bytes that are moved at a time. Default: 1 KiB, 100 KiB, 1 MiB and 10 MiB. */
  readonly sizes?: readonly number[];
  /** Milliseconds for each size, kind and worker. Default 200. */
  readonly durationMs?: number;
}

/** Bytes per second by the bytes that are moved at a time: means over workers. */
export interface HardwareFigures {
  readonly memory: ReadonlyMap<number, number>;
  readonly disk: ReadonlyMap<number, number>;
  /** Of pairs of workers, each of which is in one pair; empty when there is but one. */
  readonly network: ReadonlyMap<number, number>;
}

/**
 * One kind after the other, all workers at once, as when they work; the network pair by pair.
 * @param on - runs functions on these workers
 */
export async function benchmarkHardware(
  workers: readonly string[],
  on: (workers: readonly string[]) => WorkerRunner,
  { sizes = [KIB, 100 * KIB, MIB, 10 * MIB], durationMs = 200 }: BenchmarkOptions,
): Promise<HardwareFigures> {
  const memory = new Map<number, number>();
  const disk = new Map<number, number>();
  const network = new Map<number, number>();
  for (const nbytes of sizes) {
    if (workers.length === 0) break;
    memory.set(nbytes, mean(await on(workers).run(copyInMemory, nbytes, durationMs)));
    disk.set(nbytes, mean(await on(workers).run(writeToDisk, nbytes, durationMs)));
    const rates = new Map<string, Moved>();
    for (let index = 0; index + 1 < workers.length; index += 2) {
      const [peer, worker] = [workers[index] as string, workers[index + 1] as string];
      const moved = await on([worker]).run(fetchFromPeer, peer, nbytes, durationMs);
      for (const [address, each] of moved) rates.set(address, each);
    }
    if (rates.size > 0) network.set(nbytes, mean(rates));
  }
  return { memory, disk, network };
}

function mean(moved: ReadonlyMap<string, Moved>): number {
  let sum = 0;
  for (const { nbytes, seconds } of moved.values()) sum += nbytes / seconds;
  return sum / moved.size;
}
