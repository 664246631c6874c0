import type { Command } from 'commander';
import type { SimulationOptions } from '../simulator/index.ts';
import { amount, common, positive, rate, size } from './command-line.ts';

/** Flags that say what cluster is simulated. */
export interface ClusterFlags {
  readonly workers: number;
  readonly threads: number;
  readonly memory?: number;
  readonly bandwidth?: number;
  readonly latency?: number;
  readonly spread?: number;
  readonly validate?: boolean;
}

export function clusterFlags(command: Command): Command {
  return common(command)
    .option('-w, --workers <n>', 'workers', positive, 4)
    .option('-t, --threads <n>', 'threads of each worker', positive, 1)
    .option('-m, --memory <size>', 'memory limit of each worker (default: none)', size)
    .option(
      '--bandwidth <size>',
      'bytes per second of the link of each worker (default: 125MB)',
      rate,
    )
    .option('--latency <ms>', 'milliseconds that a message takes (default: 0.5)', amount)
    .option('--spread <x>', 'by how much durations differ from run to run, such as 0.2', amount)
    .option('--validate', 'check every invariant after each event (slow)');
}

/** The options of the flags. */
export function clusterOptions(flags: ClusterFlags): SimulationOptions {
  const { workers, threads, memory, bandwidth, latency, spread, validate } = flags;
  return {
    workers,
    worker: { threads, memoryLimitBytes: memory },
    network: {
      ...(bandwidth === undefined ? {} : { bandwidth }),
      ...(latency === undefined ? {} : { latencyMs: latency }),
    },
    ...(spread === undefined ? {} : { durations: { spread } }),
    ...(validate === undefined ? {} : { validate }),
  };
}
