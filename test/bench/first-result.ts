/**
 * From the start of a program to its first result: imports the package, starts two workers of the mode that the
 * command line names (`threads`, `processes` or `piscina`), runs one task, and prints a `FirstResult` as JSON.
 */
import { performance } from 'node:perf_hooks';
import type * as Yardmaster from '../../adapters/app/index.ts';
import type { ClusterMode } from '../../adapters/app/local-cluster.ts';

/** Milliseconds, of which none is of Node's own start. */
export interface FirstResult {
  /** From the first import to the result. */
  readonly wallMs: number;
  /** Of CPU in this process, threads included, for the same. */
  readonly cpuMs: number;
  /** Of CPU in this process, threads included, while the workers start. */
  readonly startCpuMs: number;
}

const startMs = performance.now();
const before = process.cpuUsage();
const [mode] = process.argv.slice(2);
await (mode === 'piscina' ? ofPiscina() : ofCluster(mode as ClusterMode));

async function ofCluster(mode: ClusterMode): Promise<void> {
  const { LocalCluster } = (await import(import.meta.resolve('yardmaster'))) as typeof Yardmaster;
  const { nothing } = await import('./first-task.ts');
  const importedMs = cpuMs();
  const cluster = await LocalCluster.start({ mode });
  const startCpuMs = cpuMs() - importedMs;
  const client = await cluster.client();
  await client.submit(nothing).result();
  print(startCpuMs);
  await cluster.close();
}

async function ofPiscina(): Promise<void> {
  const { Piscina } = await import('piscina');
  const importedMs = cpuMs();
  const filename = new URL('first-call.js', import.meta.url).href;
  const pool = new Piscina({ filename, minThreads: 2, maxThreads: 2 });
  const startCpuMs = cpuMs() - importedMs;
  await pool.run(undefined);
  print(startCpuMs);
  await pool.destroy();
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function print(startCpuMs: number): void {
  const taken: FirstResult = {
    wallMs: performance.now() - startMs,
    cpuMs: cpuMs(),
    startCpuMs,
  };
  process.stdout.write(`${JSON.stringify(taken)}\n`);
}
