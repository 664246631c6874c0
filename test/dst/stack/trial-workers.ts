import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { MemoryStore, SpillFolder } from '../../../adapters/stores/index.ts';
import { lineLog } from '../../../core/shared/line-log.ts';
import { YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { createWorker, type HostedWorker } from '../../../core/worker-host/create-worker.ts';
import type { WorkerKernel } from '../../../core/worker/worker-kernel.ts';
import type { WorkerTables } from '../../../core/worker/worker-tables.ts';
import { Dice } from '../dice.ts';
import { MemoryDisk } from '../disk/memory-disk.ts';
import { SETTLE_MS } from './expectations.ts';
import type { Network } from './network.ts';
import type { Planted } from './planted.ts';
import { ProcessNetwork } from './process-network.ts';
import { ADDRESS } from './scheduler-machine.ts';

/** Why a worker cannot reach its scheduler. */
const NO_PEER = ['ERR_CONNECT', 'ERR_CLOSED', 'ERR_TIMEOUT'] as const;
const RETRY_MS = 300;
const SPILL_FOLDER = '/tmp';

/** What the workers of a trial are made of. */
interface Surroundings {
  readonly seed: number;
  readonly clock: VirtualClock;
  readonly network: Network;
  readonly memoryLimitBytes: number | undefined;
  readonly planted: Planted;
  /** What workers log. */
  readonly logged: string[];
}

/** The workers of a trial, each with a disk of its own. */
export class TrialWorkers {
  /** Addresses by name, of those that live. */
  readonly addresses = new Map<string, string>();
  readonly disks = new Map<string, MemoryDisk>();
  private readonly networks = new Map<string, ProcessNetwork>();
  /** Settle when workers are there. */
  readonly starting: Promise<void>[] = [];
  /** Why one could not start, if it should have. */
  problem: string | undefined;
  /** Workers so far. */
  count = 0;
  private readonly started: HostedWorker[] = [];

  constructor(private readonly around: Surroundings) {}

  /** Starts another one. */
  join(dice: Dice): void {
    const name = `worker-${this.count++}`;
    const disk = new MemoryDisk(new Dice(this.around.seed, name), this.around.clock);
    disk.openProcess().mkdirSync(SPILL_FOLDER);
    this.disks.set(name, disk);
    this.starting.push(this.start(name, disk, dice.between(1, 3)));
  }

  /** One of them loses its power; another one mostly takes its place. */
  kill(dice: Dice): void {
    const { addresses, around } = this;
    const name = dice.oneOf([...addresses.keys(), undefined]);
    if (name === undefined) return;
    around.network.kill(name, addresses.get(name)!);
    // It may be in the middle of connecting.
    inBackground(this.networks.get(name)!.kill(), 'a killed worker could not be cut off');
    addresses.delete(name);
    if (addresses.size === 0 || dice.chance(0.7)) this.join(dice);
  }

  /** What the workers that live know of their tasks. */
  *tables(): Iterable<{ readonly address: string; readonly tables: WorkerTables }> {
    const alive = new Set(this.addresses.values());
    for (const worker of this.started) {
      const { kernel } = worker as unknown as { readonly kernel: WorkerKernel };
      if (alive.has(worker.address)) yield { address: worker.address, tables: kernel.tables };
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.started.map((worker) => worker.close()));
  }

  /** Tries again when the network fails, or the scheduler is away. */
  private async start(name: string, disk: MemoryDisk, threads: number): Promise<void> {
    const { clock } = this.around;
    for (;;) {
      try {
        const worker = await this.make(name, disk, threads);
        this.addresses.set(name, worker.address);
        this.started.push(worker);
        return;
      } catch (error) {
        if (!NO_PEER.some((code) => YardmasterError.is(error, code))) {
          this.problem ??= `${name} cannot start: ${String(error)}`;
          return;
        }
        await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
      }
    }
  }

  /** Collects no garbage: that takes real time. */
  private async make(name: string, disk: MemoryDisk, threadCount: number): Promise<HostedWorker> {
    const { clock, network, memoryLimitBytes = 0, planted, logged } = this.around;
    const transport = new ProcessNetwork(network.of(name));
    this.networks.set(name, transport);
    const area = new SpillFolder(SPILL_FOLDER, disk.openProcess());
    const cluster = { scheduler: ADDRESS, transports: [transport] };
    const executor = new InlineExecutor({ clock, threadCount, cluster });
    try {
      return await createWorker({
        name,
        clock,
        executor,
        transports: new Map([[transport.scheme, transport]]),
        schedulerAddress: ADDRESS,
        listenAddress: `${transport.scheme}://local:0`,
        log: lineLog(logged),
        store: new MemoryStore(),
        memoryLimitBytes,
        memory: { thresholds: { terminate: 0 }, disk: planted.spill?.(area) ?? area },
        validate: true,
        onSchedulerLost: 'reconnect',
        reconnect: { timeoutMs: SETTLE_MS },
      });
    } catch (error) {
      await executor.close();
      throw error;
    }
  }
}
