import { NO_PARAMETERS } from '../core/api/definition.ts';
import { BRIDGE, definePlugin, messageOf, type Timer, YardmasterError } from '../core/api/index.ts';
import { WORK_STEALING_OPTIONS } from './work-stealing/settings.ts';
import { optionsSchema } from '../core/shared/settings.ts';
import { Balancer } from './work-stealing/round.ts';

/**
 * Work stealing: at an interval, tasks that have not begun move from workers with a long queue to
 * idle ones, by the rules of the policy in the slot `stealing`. A round runs in slices, so that it
 * does not block the scheduler.
 *
 * Commands: `work-stealing.start`, `.stop`, `.running`, `.runOnce`, `.metrics`.
 */
export default definePlugin({
  name: 'work-stealing',
  apiVersion: 1,
  optionsSchema: optionsSchema(WORK_STEALING_OPTIONS),
  setup(context, { start, intervalMs, spare }) {
    const { policyIn, decisions } = context.get(BRIDGE);
    const balancer = new Balancer({
      cluster: () => context.cluster,
      policy: () => policyIn('stealing'),
      spared: new Set(spare),
      decisions,
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
        const message = `a slice of a round of work stealing threw: ${messageOf(cause)}`;
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
