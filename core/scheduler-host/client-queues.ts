import type { Clock, Timer } from '../api/clock.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { CLOCK } from '../host/tokens.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { TurnBudget } from '../shared/turn.ts';
import { Waiters } from '../util/promises.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import type { IncomingStimulus, Stimuli } from './tokens.ts';

/** Small stimuli of one client that are handled without a pause. */
const BURST = 100;

/**
 * Continues the long work that stimuli have left to the kernel's agenda, a slice once a turn of the event loop, so that
 * others have their turn in between. What the same client says meanwhile waits in its line: everything takes effect in
 * the order in which it was said, and a key that was given up may return with another meaning.
 */
@collaborator
export class ClientQueues implements Stimuli {
  /** By client; the first line that may move does, and then goes behind the others. */
  private readonly lines = new Map<string, Line>();
  private isScheduled = false;
  /** The time at which the kernel is to continue, because something waits for it; undefined: at no time. */
  alarmAtMs: number | undefined;
  private alarm: Timer | undefined;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    private readonly queue: StimulusQueue,
    private readonly kernel: SchedulerKernel,
  ) {}

  accept(stimulus: IncomingStimulus): void {
    if (this.queue.isStopped) return;
    if (!('client' in stimulus)) {
      this.queue.put(stimulus);
      return;
    }
    const { client } = stimulus;
    // What it has said before it left is of no more use.
    if (stimulus.op === 'remove-client') this.end(client);
    if (!this.isWaiting(client) || stimulus.op === 'remove-client') this.queue.put(stimulus);
    else this.lineOf(client).stimuli.push(stimulus);
  }

  /** The kernel has work that later turns continue. */
  continueLater(): void {
    if (!this.queue.isStopped) this.schedule();
  }

  /** The kernel waits for another time than before. */
  setAlarm(): void {
    const atMs = this.queue.isStopped ? undefined : this.kernel.wakeAtMs;
    this.alarm?.cancel();
    this.alarmAtMs = atMs;
    if (atMs === undefined) return;
    const waitMs = Math.max(0, Math.ceil(atMs - this.clock.nowMs()));
    this.alarm = this.clock.setTimer(waitMs, () => {
      this.alarmAtMs = undefined;
      this.queue.put({ op: 'continue' });
    });
  }

  /** Resolves when all that the client has said has been done; undefined: it has been. */
  settled(client: string): Promise<void> | undefined {
    if (!this.isWaiting(client)) return undefined;
    return this.lineOf(client).waiters.wait();
  }

  /** Nothing moves any more. */
  clear(): void {
    this.alarm?.cancel();
    for (const client of [...this.lines.keys()]) this.end(client);
  }

  private isWaiting(client: string): boolean {
    return this.lines.has(client) || this.kernel.isBusyFor(client);
  }

  private lineOf(client: string): Line {
    let line = this.lines.get(client);
    if (line === undefined) {
      line = { stimuli: [], waiters: new Waiters() };
      this.lines.set(client, line);
      this.schedule();
    }
    return line;
  }

  private get isUnsettled(): boolean {
    return !this.queue.isStopped && this.kernel.isUnsettled;
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    TurnBudget.of(this.clock).later(() => {
      this.isScheduled = false;
      this.move();
    });
  }

  private move(): void {
    if (this.isUnsettled) this.queue.put({ op: 'continue' });
    for (const [client, line] of this.lines) {
      if (this.kernel.isBusyFor(client)) continue;
      this.step(client, line);
      break;
    }
    if (this.lines.size > 0 || this.isUnsettled) this.schedule();
  }

  private step(client: string, line: Line): void {
    const { stimuli } = line;
    let handled = 0;
    while (handled < BURST && handled < stimuli.length && !this.kernel.isBusyFor(client)) {
      this.queue.put(stimuli[handled++] as IncomingStimulus);
    }
    stimuli.splice(0, handled);
    // What was handled may have ended it.
    if (this.lines.get(client) !== line) return;
    this.lines.delete(client);
    this.lines.set(client, line);
    if (stimuli.length === 0 && !this.kernel.isBusyFor(client)) this.end(client);
  }

  private end(client: string): void {
    const line = this.lines.get(client);
    this.lines.delete(client);
    line?.waiters.release();
  }
}

/** The messages of one client that have not been handled, and those who wait until they are. */
interface Line {
  readonly stimuli: IncomingStimulus[];
  readonly waiters: Waiters;
}
