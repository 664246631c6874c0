import { type Clock, elapsedMs } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import type { Outbox } from '../kernel/outbox.ts';
import type { RefuseGraph, Stimulus, UpdateGraph } from '../messages/stimulus.ts';
import { EventBus, HookRegistry, type HookShare, SLOW_MS } from '../plugin-host/hooks.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import { PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { countOf } from '../util/values.ts';
import { ClientQueues } from './client-queues.ts';
import { DataReservations } from './data-reservations.ts';
import { Delivery } from './delivery.ts';
import { ErrorReports } from './error-reports.ts';
import { JOURNAL, type SchedulerJournal } from './journal.ts';
import { Shutdown } from './shutdown.ts';
import { nameOfStimulus, StimulusQueue } from './stimulus-queue.ts';

/** Says loudly which stimulus of whom failed, although the scheduler continues. */
function containedError(stimulus: Stimulus, cause: unknown): YardmasterError {
  const { text, fields } = nameOfStimulus(stimulus);
  return new YardmasterError(
    'ERR_INTERNAL',
    `the stimulus ${text} failed and was dropped: ${messageOf(cause)}. This is a bug; what it concerns fails with it, and the scheduler continues`,
    fields,
    { cause },
  );
}

/** At most one warning about slow stimuli in this time. */
const QUIET_MS = 10_000;
/** Part of the time of a slow stimulus from which hooks are the cause of it. */
const CAUSE_SHARE = 0.5;
/** Part from which one of them is named. */
const NAMED_SHARE = 0.1;

/** Logs which stimuli blocked the scheduler's loop, and which hooks and policies took the time. */
@collaborator
export class SlowStimulusMonitor {
  private quietUntilMs = -Infinity;
  private unsaid = 0;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    private readonly slots: PolicySlotTable,
    private readonly hooks: HookRegistry,
  ) {}

  /** @param durationMs - from its beginning until what it sent had left, at least half a second */
  report(stimulus: Stimulus, durationMs: number): void {
    const nowMs = elapsedMs(this.clock);
    const shares = this.hooks.sharesOfStimulus;
    const named = shares.filter(({ ms }) => ms >= NAMED_SHARE * durationMs).slice(0, 3);
    for (const { subject, ms } of named) this.hooks.wasSlow(subject, ms);
    if (nowMs < this.quietUntilMs) {
      this.unsaid++;
      return;
    }
    const { op, stimulusId } = stimulus;
    const tasks = op === 'update-graph' ? ` with ${countOf(stimulus.tasks.length, 'task')}` : '';
    const extensionsMs = shares.reduce((sum, { ms }) => sum + ms, 0);
    const isByExtensions = extensionsMs >= CAUSE_SHARE * durationMs;
    // In virtual time a busy machine is no news; what a plugin does is.
    if (this.clock.elapsedMs !== undefined && !isByExtensions) return;
    const more = this.unsaid === 0 ? '' : `; so did ${countOf(this.unsaid, 'other')} lately`;
    const policies = this.slots.names; // One of them may be what is slow.
    const names = Object.entries(policies).map(([slot, name]) => `${slot} ${name}`);
    const why = isByExtensions
      ? named.map(textOf).join(', ')
      : `a large graph, a checkpoint of a recording or journal, or one of the policies (${names.join(', ')})` +
        (extensionsMs === 0 ? '' : `; extensions took ${Math.round(extensionsMs)} ms of it`);
    this.log.warn(
      { stimulusId, op, durationMs, policies, hooks: named },
      `${stimulusId}${tasks} blocked the scheduler for ${Math.round(durationMs)} ms${more}: ${why}`,
    );
    this.unsaid = 0;
    this.quietUntilMs = nowMs + QUIET_MS;
  }
}

function textOf({ subject, ms, calls }: HookShare): string {
  return `${subject} took ${Math.round(ms)} ms in ${countOf(calls, 'call')}`;
}

/**
 * The life of a stimulus. Stimuli are handled one at a time and completely: the kernel decides, what it
 * sends leaves before the next stimulus, and events are published after.
 */
@collaborator
export class SchedulerHost {
  constructor(
    private readonly queue: StimulusQueue,
    private readonly kernel: SchedulerKernel,
    private readonly delivery: Delivery,
    private readonly hooks: HookRegistry,
    private readonly bus: EventBus,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly slowStimuli: SlowStimulusMonitor,
    private readonly clientQueues: ClientQueues,
    private readonly reservations: DataReservations,
    private readonly shutdown: Shutdown,
    private readonly errors: ErrorReports,
    @inject(JOURNAL) private readonly journal: SchedulerJournal,
  ) {
    queue.consume((stimulus) => this.handle(stimulus));
  }

  private handle(given: Stimulus): void {
    this.hooks.begin(given.stimulusId);
    this.bus.hold();
    const nowMs = this.clock.nowMs();
    const startMs = this.clock.elapsedMs === undefined ? nowMs : this.clock.elapsedMs();
    // The kernel, a recording and a journal are given what the plugins have decided, so that a replay needs none of them.
    const stimulus = given.op === 'update-graph' ? this.admitted(given) : given;
    let outbox: Outbox | undefined;
    try {
      if (this.journal.isOn) this.journal.before(stimulus);
      outbox = this.kernel.handle(stimulus, nowMs);
    } catch (cause) {
      outbox = this.contain(stimulus, cause);
    }
    try {
      if (this.journal.isOn) this.journal.after();
      if (outbox !== undefined) this.delivery.deliver(outbox, stimulus);
    } catch (cause) {
      this.stop(stimulus, cause);
    }
    this.queue.runChanges();
    this.bus.release();
    const durationMs = elapsedMs(this.clock) - startMs;
    this.hooks.end(durationMs);
    if (durationMs >= SLOW_MS) this.slowStimuli.report(stimulus, durationMs);
    if (this.kernel.isUnsettled) this.clientQueues.continueLater();
    if (this.kernel.wakeAtMs !== this.clientQueues.alarmAtMs) this.clientQueues.setAlarm();
    if ('client' in stimulus || stimulus.op === 'restart') this.reservations.handled(stimulus);
  }

  /** The graph, or its refusal in its place. What a journal holds was admitted before. */
  private admitted(graph: UpdateGraph): UpdateGraph | RefuseGraph {
    if (this.journal.reading !== undefined) return graph;
    const refusal = this.hooks.refusalOf(graph);
    if (refusal === undefined) return graph;
    const { client, keys, stimulusId } = graph;
    return { op: 'refuse-graph', client, keys, stimulusId, ...refusal };
  }

  /**
   * The stimulus failed: the kernel brings its state to a legal end, in which what was concerned fails, and the
   * scheduler continues. It stops when there is no such end.
   */
  private contain(stimulus: Stimulus, cause: unknown): Outbox | undefined {
    // A plugin whose hooks must not fail says so by this error.
    if (YardmasterError.is(cause, 'ERR_PLUGIN_HOOK')) {
      this.stop(stimulus, cause);
      return undefined;
    }
    try {
      const outbox = this.kernel.recover(stimulus, cause);
      if (this.journal.isOn) this.journal.failed(stimulus);
      this.errors.report(containedError(stimulus, cause));
      return outbox;
    } catch {
      this.stop(stimulus, cause);
      return undefined;
    }
  }

  private stop(stimulus: Stimulus, cause: unknown): void {
    const { text } = nameOfStimulus(stimulus);
    this.shutdown.stopBecause(`the stimulus ${text} could not be handled`, cause);
  }
}
