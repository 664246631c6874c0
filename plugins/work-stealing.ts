import { NO_PARAMETERS } from '../core/api/plugin.ts';
import {
  definePlugin,
  PLUGIN_API_VERSION,
  type Timer,
  YardmasterError,
} from '../core/api/index.ts';
import { Balancer } from './work-stealing/round.ts';

/** Options of the plugin `work-stealing`; in a configuration they are `scheduler.workStealing`. */
interface WorkStealingOptions {
  /** Steal from the start. */
  readonly start: boolean;
  /** Milliseconds between two rounds. */
  readonly intervalMs: number;
  /** Prefixes whose tasks stay where they are, besides those that are configured to take 1 ms. */
  readonly spare: readonly string[];
}

/** Pieces of shuffles: so short that a message takes longer. */
const SPARED = ['rechunk-split', 'split-shuffle', 'split-taskshuffle', 'split-stage'];

/**
 * Work stealing: at an interval, tasks that have not begun move from workers with a long queue to
 * idle ones, by the rules of the policy in the slot `stealing`. A round runs in slices, so that it
 * does not block the scheduler.
 *
 * Commands: `work-stealing.start`, `.stop`, `.running`, `.runOnce`, `.metrics`.
 */
export default definePlugin<WorkStealingOptions>({
  name: 'work-stealing',
  apiVersion: PLUGIN_API_VERSION,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      start: { type: 'boolean', default: true },
      intervalMs: { type: 'number', minimum: 1, default: 100 },
      spare: { type: 'array', items: { type: 'string' }, default: SPARED },
    },
  },
  setup(context, { start, intervalMs, spare }) {
    const balancer = new Balancer({
      cluster: () => context.cluster,
      policy: () => context.policyIn('stealing'),
      spared: new Set(spare),
      decisions: context.decisions,
      enact: (proposals, victims) =>
        context.enqueue({ op: 'steal-tasks', proposals: proposals, victims }),
    });
    let timer: Timer | undefined;
    let slices: Timer | undefined;
    const endSlices = (): void => {
      slices?.cancel();
      slices = undefined;
    };
    // The first slice runs at once, each other one when whatever has come meanwhile is done.
    const continueLater = (): void => {
      slices = context.clock.setTimer(0, advance);
    };
    const advance = (): void => {
      slices = undefined;
      try {
        if (balancer.advance()) continueLater();
      } catch (cause) {
        const message = `a slice of a round of work stealing threw: ${String(cause)}`;
        context.report(new YardmasterError('ERR_PLUGIN_HOOK', message, {}, { cause }));
      }
    };
    const tick = (): void => {
      if (balancer.begin() && balancer.advance()) continueLater();
    };
    const startTimer = (): boolean => {
      balancer.awake();
      timer ??= context.every(intervalMs, tick);
      return true;
    };
    const stopTimer = (): boolean => {
      timer?.cancel();
      timer = undefined;
      endSlices();
      balancer.stop();
      return false;
    };
    context.command('start', { parameters: NO_PARAMETERS }, startTimer);
    context.command('stop', { parameters: NO_PARAMETERS }, stopTimer);
    context.command('running', { parameters: NO_PARAMETERS }, () => timer !== undefined);
    context.command('runOnce', { parameters: NO_PARAMETERS }, () => {
      endSlices();
      return { asked: balancer.runOnce() };
    });
    context.command('metrics', { parameters: NO_PARAMETERS }, () => balancer.metrics);
    return {
      start: () => {
        if (start) startTimer();
      },
      close: () => void stopTimer(),
      workerAdded: () => balancer.awake(),
      workerStatusChanged: () => balancer.awake(),
    };
  },
});
