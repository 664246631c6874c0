import { writeFileSync } from 'node:fs';
import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import { Simulation } from '../../../adapters/simulator/index.ts';
import { type CostedTask, graphWorkload } from '../../../adapters/workloads/index.ts';
import { LogWriter } from '../../../core/log/log-writer.ts';
import { RecordingKernel } from '../../../core/log/recording-kernel.ts';

const WORKERS = 4;
const FILES = 24;

/** Files that are read, cleaned and counted; counts are added up; one file cannot be parsed. */
function pipeline(): CostedTask[] {
  const files = Array.from({ length: FILES }, (_, k) => k);
  const groups = Array.from({ length: FILES / 4 }, (_, k) => k);
  return [
    ...files.flatMap((k) => [
      { key: `load-${k}`, durationS: 0.2 + 0.05 * (k % 5), nbytes: 4e6 + 1e6 * (k % 3) },
      { key: `clean-${k}`, needs: [`load-${k}`], durationS: 0.3, nbytes: 2e6 },
      { key: `count-${k}`, needs: [`clean-${k}`], durationS: 0.15, nbytes: 5e4 },
    ]),
    ...groups.map((k) => ({
      ...{ key: `merge-${k}`, durationS: 0.4, nbytes: 1e6 },
      needs: [0, 1, 2, 3].map((j) => `count-${4 * k + j}`),
    })),
    { key: 'total', needs: groups.map((k) => `merge-${k}`), durationS: 0.5, nbytes: 1e5 },
    { key: 'parse-header', durationS: 0.1 },
    { key: 'schema', needs: ['parse-header'], durationS: 0.1 },
  ];
}

/**
 * Writes a recording of a cluster in virtual time, the same bytes each time: four workers, of which one dies and is
 * replaced, and a task that fails.
 */
export async function recordSimulation(file: string): Promise<void> {
  const parts: Uint8Array[] = [];
  let log: LogWriter | undefined;
  const simulation = await Simulation.start({
    workers: WORKERS,
    worker: { memoryLimitBytes: 2e8, threads: 2 },
    faults: [{ kind: 'kill', worker: 2, atMs: 1500, restartAfterMs: 400 }],
    outcome: (key) => (key === 'parse-header' ? 'failure' : 'success'),
    kernelLog: (config) => {
      const header = {
        ...({ holds: 'all', segment: 1 } as const),
        ...{ version: '0.1.0', schedulerId: 'simulated', createdAtMs: 0, folder: '/' },
        config: JSON.parse(JSON.stringify(config)) as Readonly<Record<string, unknown>>,
      };
      log = new LogWriter(new MsgpackCodec(), (bytes) => parts.push(bytes.slice()), header, 0);
      return log;
    },
  });
  simulation.submit(graphWorkload('pipeline', pipeline(), { wanted: ['schema', 'total'] }));
  await simulation.run({ maxMs: 60_000 });
  const { nowMs, kernel } = simulation;
  if (kernel instanceof RecordingKernel) log?.end(kernel.checkNow(true), nowMs);
  writeFileSync(file, Buffer.concat(parts));
}
