import { type Clock, elapsedMs } from '../api/clock.ts';
import { type Logger, token, type Token } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { type HookRegistry, HOOKS, type HookShare, QUIET_MS } from '../plugin-host/hook-table.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CLOCK, LOGGER } from '../plugin-host/injection/tokens.ts';
import { type PolicySlotTable, SLOTS } from '../plugin-host/policy-slots.ts';

export const SLOW_STIMULI: Token<SlowStimulusMonitor> = token('slow-stimuli');

/** Part of the time of a slow stimulus from which hooks are the cause of it. */
const CAUSE_SHARE = 0.5;
/** Part from which one of them is named. */
const NAMED_SHARE = 0.1;

/** Logs which stimuli blocked the scheduler's loop: which hooks took the time, or which policies may have. */
export class SlowStimulusMonitor {
  private quietUntilMs = -Infinity;
  private unsaid = 0;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
    @inject(HOOKS) private readonly hooks: HookRegistry,
  ) {}

  /** @param durationMs - from its beginning until what it sent had left, at least half a second */
  report(stimulus: Stimulus, durationMs: number): void {
    const nowMs = elapsedMs(this.clock);
    if (nowMs < this.quietUntilMs) {
      this.unsaid++;
      return;
    }
    const { op, stimulusId } = stimulus;
    const tasks = op === 'update-graph' ? ` with ${stimulus.tasks.length} tasks` : '';
    const shares = this.hooks.sharesOfStimulus;
    const named = shares.filter(({ ms }) => ms >= NAMED_SHARE * durationMs).slice(0, 3);
    const hooksMs = shares.reduce((sum, { ms }) => sum + ms, 0);
    const isByHooks = hooksMs >= CAUSE_SHARE * durationMs;
    // In virtual time a busy machine is no news; what a plugin does is.
    if (this.clock.elapsedMs !== undefined && !isByHooks) return;
    const more = this.unsaid === 0 ? '' : `; so did ${this.unsaid} others lately`;
    const policies = this.slots.names; // One of them may be what is slow.
    const names = Object.entries(policies).map(([slot, name]) => `${slot} ${name}`);
    const why = isByHooks
      ? named.map(textOf).join(', ')
      : `a large graph, a checkpoint of a recording, or one of the policies (${names.join(', ')})` +
        (hooksMs === 0 ? '' : `; the hooks of plugins took ${Math.round(hooksMs)} ms of it`);
    this.log.warn(
      { stimulusId, op, durationMs, policies, hooks: named },
      `${stimulusId}${tasks} blocked the scheduler for ${Math.round(durationMs)} ms${more}: ${why}`,
    );
    this.unsaid = 0;
    this.quietUntilMs = nowMs + QUIET_MS;
  }
}

function textOf({ subject, ms, calls }: HookShare): string {
  const times = calls === 1 ? 'one call' : `${calls} calls`;
  return `${subject} took ${Math.round(ms)} ms in ${times}`;
}
