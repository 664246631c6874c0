/** A cluster of processes behind shaped links, which runs workloads and is recorded. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ConfigInput } from '../../adapters/app/config.ts';
import { Client, ref, task, wait } from '../../adapters/app/index.ts';
import { replayRecording } from '../../adapters/app/past.ts';
import type { SimulatedWorkload } from '../../adapters/simulator/index.ts';
import { Runs } from '../kit/runs.ts';
import { compute, sleep } from './real-tasks.ts';
import { HUB, type Place } from './shaped-links.ts';

/** A workload, and whether its tasks use a processor. */
export interface RealGraph {
  readonly workload: SimulatedWorkload;
  readonly isBusy: boolean;
}

/** The scheduler's view of a run. */
export interface RunFigures {
  /** Bytes of results that reached another worker. */
  movedBytes: number;
  /** The most bytes of results that one worker held. */
  peakBytes: number;
  /** Bytes per second that the scheduler expected of a link when the run began: it learns from the runs before. */
  readonly expectedBandwidth: number;
}

/** Submits graphs, one after the other. */
interface Submitter {
  /** Seconds from the submission until all results are there. */
  run(graph: RealGraph, keyOf: (key: string) => string): Promise<number>;
  close(): Promise<void>;
}

const CLI = createRequire(import.meta.url).resolve('#cli');
/** The folder of the Python modules, beside the sources. */
const PYTHON_PATH = new URL('../../../test/lab/', import.meta.url).pathname;

export class RealCluster {
  private readonly recording: string;
  private runCount = 0;

  private constructor(
    folder: string,
    private readonly runs: Runs,
    private readonly submitter: Submitter,
  ) {
    this.recording = join(folder, 'run.ylog');
  }

  /**
   * Starts a scheduler at the hub, and a worker with one thread in each place.
   * @param folder - made for its files
   * @param python - runs Dask's client and workers in the place of ours
   */
  static async start(
    places: readonly Place[],
    config: ConfigInput,
    folder: string,
    python?: string,
  ): Promise<RealCluster> {
    const runs = new Runs({ PYTHONPATH: PYTHON_PATH });
    mkdirSync(folder);
    const configFile = join(folder, 'config.json');
    writeFileSync(configFile, JSON.stringify(config));
    const where = ['--host', HUB, '--port', '0', '--insecure', '--no-dashboard'];
    const files = ['--config', configFile, '--record', join(folder, 'run.ylog')];
    const dask = python === undefined ? [] : ['--dask', '--dask-port', '0', '--python', python];
    const scheduler = runs.yardmaster('scheduler', ...where, ...files, ...dask);
    // Dask's address is printed first.
    const [address = ''] = await scheduler.addresses(1);
    for (const { name, host, enter } of places) {
      const flags = [address, '--host', host, '--name', name, '--no-nanny'];
      const worker =
        python === undefined
          ? [process.execPath, CLI, 'worker', ...flags, '--threads', '1', '--insecure']
          : [python, '-m', 'distributed.cli.dask_worker', ...flags, '--nthreads', '1'];
      const [program = '', ...args] = [...enter, ...worker];
      runs.start(program, args);
    }
    const submitter =
      python === undefined
        ? await OwnSubmitter.connect(address, places.length)
        : await DaskSubmitter.start(python, address, places.length);
    return new RealCluster(folder, runs, submitter);
  }

  /** Runs a graph under keys with new prefixes, so that the scheduler has learnt nothing about its durations. */
  async run(graph: RealGraph): Promise<{ readonly number: number; readonly seconds: number }> {
    const number = this.runCount++;
    const names = new Map(
      graph.workload.tasks.map(({ key, prefix }, index) => {
        const name = prefix === undefined ? key : `${prefix.replaceAll('-', '_')}-${index}`;
        return [key, `run${number}.${name}`];
      }),
    );
    const seconds = await this.submitter.run(graph, (key) => names.get(key)!);
    return { number, seconds };
  }

  /** Closes the cluster, and reads its recording. @returns figures by the number of the run */
  async end(): Promise<ReadonlyMap<number, RunFigures>> {
    await this.submitter.close();
    await this.runs.end();
    const found = new Map<number, RunFigures>();
    let current: RunFigures = {
      movedBytes: 0,
      peakBytes: 0,
      expectedBandwidth: 0,
    };
    const held = new Map<string, number>();
    await replayRecording(this.recording, {
      onFrame: ({ kind, payload }, { cluster }) => {
        if (kind !== 'stimulus') return;
        if (payload.op === 'task-finished') {
          // The worker holds the result already, and inputs that the scheduler gives up because of it.
          const bytes = (held.get(payload.worker) ?? 0) + (payload.nbytes ?? 0);
          current.peakBytes = Math.max(current.peakBytes, bytes);
        }
        if (payload.op === 'update-graph') {
          const number = Number(/^run(\d+)\./.exec(payload.tasks[0]?.key ?? '')?.[1]);
          current = {
            movedBytes: 0,
            peakBytes: 0,
            expectedBandwidth: cluster.costs.bandwidth,
          };
          found.set(number, current);
        } else if (payload.op === 'add-keys') {
          for (const key of payload.keys) current.movedBytes += cluster.tasks.get(key)?.nbytes ?? 0;
        }
        for (const { address, nbytes } of cluster.workers.values()) {
          held.set(address, nbytes);
          current.peakBytes = Math.max(current.peakBytes, nbytes);
        }
      },
    });
    return found;
  }
}

class OwnSubmitter implements Submitter {
  private constructor(private readonly client: Client) {}

  static async connect(address: string, workers: number): Promise<OwnSubmitter> {
    const client = await Client.connect(address);
    while ((await client.hasWhat()).size < workers) await pause(50);
    return new OwnSubmitter(client);
  }

  async run({ workload, isBusy }: RealGraph, keyOf: (key: string) => string): Promise<number> {
    const work = isBusy ? compute : sleep;
    const graph = Object.fromEntries(
      workload.tasks.map(({ key, dependencies }, index) => [
        keyOf(key),
        task(
          work,
          1000 * workload.durationsS[index]!,
          workload.nbytes[index]!,
          ...dependencies.map((need) => ref(keyOf(need))),
        ),
      ]),
    );
    const begunMs = performance.now();
    const futures = this.client.compute(graph, workload.keys.map(keyOf));
    await wait(futures);
    const seconds = (performance.now() - begunMs) / 1000;
    for (const future of futures) future.release();
    return seconds;
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

/** Dask's client, in a process that reads graphs and prints seconds: see real_tasks.py. */
class DaskSubmitter implements Submitter {
  private constructor(
    private readonly child: ChildProcess,
    private readonly lines: AsyncIterator<string>,
  ) {}

  static async start(python: string, address: string, workers: number): Promise<DaskSubmitter> {
    const child = spawn(python, [`${PYTHON_PATH}real_tasks.py`, address, String(workers)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONPATH: PYTHON_PATH },
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const submitter = new DaskSubmitter(child, lines);
    await submitter.line();
    return submitter;
  }

  async run({ workload, isBusy }: RealGraph, keyOf: (key: string) => string): Promise<number> {
    const tasks = workload.tasks.map(({ key, dependencies }, index) => {
      const ms = 1000 * workload.durationsS[index]!;
      return [keyOf(key), ms, Math.round(workload.nbytes[index]!), dependencies.map(keyOf)];
    });
    this.child.stdin!.write(`${JSON.stringify([tasks, workload.keys.map(keyOf), isBusy])}\n`);
    return Number(await this.line());
  }

  async close(): Promise<void> {
    this.child.stdin!.end();
    await this.lines.next();
  }

  private async line(): Promise<string> {
    const next = await this.lines.next();
    if (next.done === true) throw new Error('the client of Dask ended early');
    return next.value;
  }
}

/** Lets the cluster drop the results of the last run. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
