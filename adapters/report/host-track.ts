import type { ClusterView, WorkerView } from '../../core/api/index.ts';
import type { HostLoad } from './history.ts';

/** Share of the processors of a machine from which on they count as all busy. */
const FULL = 0.9;

/** A longer time between two looks says nothing about what was in between, in seconds. */
const STEP_MAX_S = 5;

/** The processors of machines, from what their workers tell with each heartbeat. */
export class HostTrack {
  private readonly byHost = new Map<
    string,
    { -readonly [Name in keyof HostLoad]: HostLoad[Name] }
  >();
  private lastS: number | undefined;

  get loads(): readonly HostLoad[] {
    return [...this.byHost.values()];
  }

  /** O(workers) */
  sample({ workers }: ClusterView, atS: number): void {
    const stepS = Math.min(STEP_MAX_S, atS - (this.lastS ?? atS));
    this.lastS = atS;
    if (stepS <= 0) return;
    const byHost = new Map<string, WorkerView[]>();
    for (const worker of workers.values()) {
      if (worker.metrics.hostCores === undefined) continue;
      const known = byHost.get(worker.host);
      if (known === undefined) byHost.set(worker.host, [worker]);
      else known.push(worker);
    }
    for (const [host, its] of byHost) this.add(host, its, stepS);
  }

  private add(host: string, workers: readonly WorkerView[], stepS: number): void {
    let [running, busyPercent, cores] = [0, 0, 1];
    /** Cores that each process used, and threads of it that waited for one, by process. */
    const own = new Map<string, readonly [used: number, waited: number | undefined]>();
    for (const { metrics, identity, processing, threadCount, address } of workers) {
      running += Math.min(threadCount, processing.size);
      const { hostCpuPercent = 0, hostCores = 1, cpuPercent, sharedCpuPercent = 0 } = metrics;
      const { cpuWaitPercent } = metrics;
      busyPercent = Math.max(busyPercent, hostCpuPercent);
      cores = hostCores;
      const waited = cpuWaitPercent === undefined ? undefined : cpuWaitPercent / 100;
      own.set(String(identity.pid ?? address), [(cpuPercent ?? sharedCpuPercent) / 100, waited]);
    }
    if (running === 0) return;
    let [ownCores, waiting] = [0, 0];
    for (const [used, waited] of own.values()) {
      ownCores += used;
      // Where the system does not tell, each thread with a task is taken to want a processor.
      waiting += waited ?? Math.max(0, running / own.size - used);
    }
    let load = this.byHost.get(host);
    if (load === undefined) {
      load = { host, cores, measuredS: 0, fullS: 0, busyCoreS: 0, ownCoreS: 0, lostS: 0 };
      this.byHost.set(host, load);
    }
    load.measuredS += stepS;
    if (busyPercent < 100 * FULL * cores) return;
    load.fullS += stepS;
    load.busyCoreS += (stepS * busyPercent) / 100;
    load.ownCoreS += stepS * ownCores;
    load.lostS += stepS * Math.min(running, waiting);
  }
}
