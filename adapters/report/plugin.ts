import { NO_PARAMETERS } from '../../core/api/definition.ts';
import { BRIDGE, definePlugin, type Timer, YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { ProfileReader } from '../dashboard/profile.ts';
import { packHistory } from './history.ts';
import { RunCollector } from './run-collector.ts';

/** Runs that are kept for one report; further ones are counted. */
const RUNS_MAX = 200_000;

/** Reports at one time. */
const REPORTS_MAX = 16;

/** Between two looks at the memory of workers. */
const SAMPLE_MS = 200;

/** Between two readings of what workers sampled: those that join are sampled from the next one on. */
const PROFILE_MS = 5000;

/** Parameters of the commands that have some. */
export const REPORT_PARAMETERS = {
  stop: {
    type: 'object',
    properties: { id: { type: 'integer' } },
    required: ['id'],
    additionalProperties: false,
  },
} as const;

/** A collection that is under way, and its client. */
interface Collecting {
  readonly collector: RunCollector;
  readonly client: string | undefined;
  readonly profile: ProfileReader;
  readonly timers: readonly Timer[];
  stopObserving(): void;
}

/**
 * Collects the runs of a piece of work for clients that want a report about it. `report.start` begins and returns a
 * number, `report.stop` ends and returns what was collected. In between there are a hook and timers, and workers sample the
 * calls of their tasks; otherwise there is none of that.
 */
export default definePlugin({
  name: 'report',
  apiVersion: 1,
  setup(context) {
    const { cluster, clock } = context;
    const open = new Map<number, Collecting>();
    let count = 0;
    const end = (id: number): Collecting | undefined => {
      const found = open.get(id);
      found?.stopObserving();
      for (const timer of found?.timers ?? []) timer.cancel();
      open.delete(id);
      return found;
    };
    context.command('start', { access: 'client', parameters: NO_PARAMETERS }, (_, { client }) => {
      if (open.size >= REPORTS_MAX) {
        throw new YardmasterError(
          'ERR_PROTOCOL',
          `${REPORTS_MAX} reports are being collected already; wait for one of them to end`,
          { limit: REPORTS_MAX },
        );
      }
      const collector = new RunCollector(() => clock.nowMs(), RUNS_MAX);
      collector.sample(cluster);
      const stopObserving = context.get(BRIDGE).observe(collector.hooks);
      const profile = new ProfileReader(context, clock.nowMs());
      const readProfile = (): void =>
        inBackground(profile.read(), 'a report could not read the samples of workers');
      readProfile();
      const timers = [
        context.every(SAMPLE_MS, () => collector.sample(cluster)),
        context.every(PROFILE_MS, readProfile),
      ];
      const id = ++count;
      open.set(id, { collector, client, profile, timers, stopObserving });
      return id;
    });
    context.command('stop', { access: 'client', parameters: REPORT_PARAMETERS.stop }, ({ id }) => {
      const found = end(id);
      if (found === undefined) {
        throw new YardmasterError(
          'ERR_PROTOCOL',
          `there is no report ${String(id)}: it has ended, or the scheduler is another one`,
          { id },
        );
      }
      const history = found.collector.finish(cluster);
      return found.profile.answer().then((profile) => packHistory({ ...history, profile }));
    });
    return {
      clientRemoved: ({ key }) => {
        for (const [id, { client }] of open) if (client === key) end(id);
      },
    };
  },
});
