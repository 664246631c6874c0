import { definePlugin } from '../../../adapters/app/entries/plugin.ts';
import type { RunningScheduler } from '../../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { lineLog } from '../../../core/shared/line-log.ts';
import { YardmasterError } from '../../../core/api/index.ts';
import type { Digest } from '../../../core/log/digest.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { Dice } from '../dice.ts';
import type { DiskProcess } from '../disk/disk-process.ts';
import { MemoryDisk } from '../disk/memory-disk.ts';
import type { Network } from './network.ts';
import type { StackPlan } from './plan.ts';
import type { Planted } from './planted.ts';
import { ProcessNetwork } from './process-network.ts';

export const ADDRESS = 'inmemory://scheduler:1';
const FOLDER = '/var/lib/yardmaster';
const RETRY_MS = 400;

/** One life of the scheduler. */
interface Life {
  readonly running: RunningScheduler;
  readonly network: ProcessNetwork;
  readonly files: DiskProcess;
  /** Silent when it is dead. */
  readonly lines: string[];
}

/** What a machine with a scheduler needs. */
interface Surroundings {
  readonly seed: number;
  readonly plan: StackPlan;
  readonly clock: VirtualClock;
  readonly network: Network;
  readonly digest: Digest;
  readonly planted: Planted;
  /** Called whenever it runs again. */
  readonly onRestart: (running: RunningScheduler) => void;
}

/** A machine whose scheduler is started again whenever it ends. */
export class SchedulerMachine {
  readonly disk: MemoryDisk;
  /** What the schedulers logged before they were killed. */
  readonly logged: string[] = [];
  /** Why a scheduler could not start, or ended by itself, if it should not have. */
  problem: string | undefined;
  /** How often it was killed or ended. */
  ends = 0;
  private life: Life | undefined;
  private isOver = false;

  constructor(private readonly around: Surroundings) {
    this.disk = new MemoryDisk(new Dice(around.seed, 'disk'), around.clock);
  }

  /** Undefined while it is down. */
  get running(): RunningScheduler | undefined {
    return this.life?.running;
  }

  /** @throws what `startScheduler` throws */
  async start(): Promise<void> {
    const { clock, network: wires, plan, planted } = this.around;
    const network = new ProcessNetwork(wires.of('scheduler'));
    const files = this.disk.openProcess();
    const lines: string[] = [];
    let running: RunningScheduler;
    try {
      running = await startScheduler(
        {
          clock,
          transports: [network],
          log: lineLog(lines),
          config: {
            scheduler: {
              validate: true,
              allowedFailures: 1000,
              plugins: [{ use: this.watch() }],
              activeMemoryManager: { start: plan.managesMemory, interval: '200 ms' },
            },
          },
          ...(plan.journal === undefined
            ? {}
            : {
                journal: {
                  ...plan.journal,
                  folder: FOLDER,
                  files: planted.journal?.(files) ?? files,
                },
              }),
        },
        ADDRESS,
      );
    } catch (error) {
      files.kill();
      throw error;
    }
    const life = { running, network, files, lines };
    this.life = life;
    running.closed.catch((error: unknown) => {
      if (this.life === life) this.onEnd(error);
    });
  }

  /**
   * Not when it has given up its journal: nothing would come back.
   * @param how - with the power all is lost that was not synced, or is on its way
   */
  kill(how: 'process' | 'power', backAfterMs: number): void {
    const { life } = this;
    if (life === undefined || this.hasGivenUpJournal) return;
    this.leave(life);
    life.files.kill();
    if (how === 'power') {
      this.around.network.cutAll(ADDRESS);
      this.disk.losePower();
    }
    inBackground(life.network.kill(), 'a killed process could not be cut off');
    inBackground(life.running.close(), 'a killed scheduler could not be tidied up');
    this.comeBack(backAfterMs);
  }

  /** For good. */
  async close(): Promise<void> {
    this.isOver = true;
    await this.life?.running.close();
  }

  /** Its journal cannot be written: it ends, or continues without. */
  private onEnd(error: unknown): void {
    const { life } = this;
    if (life === undefined || this.isOver) return;
    this.leave(life);
    life.files.kill();
    if (!YardmasterError.is(error, 'ERR_JOURNAL'))
      this.problem ??= `the scheduler ended: ${String(error)}`;
    this.comeBack(RETRY_MS);
  }

  private leave({ lines }: Life): void {
    this.ends++;
    this.logged.push(...lines.splice(0));
    this.life = undefined;
  }

  private comeBack(afterMs: number): void {
    this.around.clock.setTimer(afterMs, () => {
      inBackground(this.tryToStart(), (error) => {
        this.problem ??= `the scheduler does not start again: ${error.message}`;
      });
    });
  }

  private async tryToStart(): Promise<void> {
    if (this.isOver) return;
    const { isFull, isSyncFailing } = this.disk.faults;
    try {
      await this.start();
    } catch (error) {
      if (!(isFull || isSyncFailing) || !YardmasterError.is(error, 'ERR_JOURNAL')) throw error;
      this.comeBack(RETRY_MS);
      return;
    }
    if (this.running !== undefined) this.around.onRestart(this.running);
  }

  /** It runs without its journal, since that could not be written. */
  get hasGivenUpJournal(): boolean {
    return this.lines.some((line) => line.includes('The scheduler continues without it'));
  }

  /** Everything that was logged. */
  get lines(): readonly string[] {
    return [...this.logged, ...(this.life?.lines ?? [])];
  }

  private watch(): object {
    const { digest, clock } = this.around;
    return definePlugin({
      name: 'watch',
      apiVersion: 1,
      setup: () => ({
        taskTransition: (task, from, to) => {
          digest.addText(`${task.key} ${from} ${to}`);
          digest.add(clock.nowMs());
        },
      }),
    });
  }
}
