import type { Clock } from '../api/clock.ts';
import { type Logger, token, type Token } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CLOCK, LOGGER } from '../plugin-host/injection/tokens.ts';
import { type PolicySlotTable, SLOTS } from '../plugin-host/policy-slots.ts';

export const SLOW_STIMULI: Token<SlowStimulusMonitor> = token('slow-stimuli');

/** Milliseconds from which a stimulus is slow: nothing else is served meanwhile. */
export const SLOW_MS = 500;
/** At most one warning in this time. */
const QUIET_MS = 10_000;

/** Logs which stimuli blocked the scheduler's loop, and which policies may be the cause. */
export class SlowStimulusMonitor {
  private quietUntilMs = -Infinity;
  private unsaid = 0;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
  ) {}

  /** @param durationMs - from its beginning until what it sent had left, {@link SLOW_MS} or more */
  report(stimulus: Stimulus, durationMs: number): void {
    const nowMs = this.clock.nowMs();
    if (nowMs < this.quietUntilMs) {
      this.unsaid++;
      return;
    }
    const { op, stimulusId } = stimulus;
    const tasks = op === 'update-graph' ? ` with ${stimulus.tasks.length} tasks` : '';
    const more = this.unsaid === 0 ? '' : `; so did ${this.unsaid} others lately`;
    const policies = this.slots.names; // One of them may be what is slow.
    const names = Object.entries(policies).map(([slot, name]) => `${slot} ${name}`);
    this.log.warn(
      { stimulusId, op, durationMs, policies },
      `${stimulusId}${tasks} blocked the scheduler for ${Math.round(durationMs)} ms${more}: ` +
        `a large graph, a checkpoint of a recording, a plugin's hook, or one of the policies (${names.join(', ')})`,
    );
    this.unsaid = 0;
    this.quietUntilMs = nowMs + QUIET_MS;
  }
}
