import { setTimeout as pause } from 'node:timers/promises';
import { NO_PARAMETERS } from '../../core/api/definition.ts';
import { BRIDGE, definePlugin, type Timer, YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { ProfileReader } from '../dashboard/profile.ts';
import { packHistory } from './history.ts';
import type { Explanation } from '../dashboard/page-messages.ts';
import { reportOf } from './report.ts';
import { RunCollector } from './run-collector.ts';

/** Runs that are kept for one report; further ones are counted. */
const RUNS_MAX = 200_000;

/** Reports at one time. */
const REPORTS_MAX = 16;

/** Between two looks at the memory of workers. */
const SAMPLE_MS = 200;

/** Between two readings of what workers sampled: those that join are sampled from the next one on. */
const PROFILE_MS = 5000;

/** Seconds for which `report.explain` looks, by default and at most; it ends sooner after so many runs, which are soon analysed. */
const EXPLAIN_S = 5;
const EXPLAIN_MAX_S = 60;
const EXPLAIN_RUNS_MAX = 20_000;
const LOOK_MS = 20;

/** Parameters of the commands that have some. */
export const REPORT_PARAMETERS = {
  stop: {
    type: 'object',
    properties: { id: { type: 'integer' } },
    required: ['id'],
    additionalProperties: false,
  },
  explain: {
    type: 'object',
    properties: { seconds: { type: 'number', exclusiveMinimum: 0, maximum: EXPLAIN_MAX_S } },
    additionalProperties: false,
  },
} as const;

/** A collection that is under way, and its client. */
interface Collecting {
  readonly collector: RunCollector;
  readonly client: string | undefined;
  readonly profile: ProfileReader | undefined;
  readonly timers: readonly Timer[];
  stopObserving(): void;
}

/**
 * Collects the runs of a piece of work for clients that want a report about it. `report.start` begins and returns a
 * number, `report.stop` ends and returns what was collected. In between there are a hook and timers, and workers sample the
 * calls of their tasks; otherwise there is none of that.
 * `report.explain` looks for some seconds at what is under way, without samples, and says why it takes as long as it does.
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
    const begin = (client: string | undefined, runsMax: number, isSampled: boolean): number => {
      if (open.size >= REPORTS_MAX) {
        throw new YardmasterError(
          'ERR_PROTOCOL',
          `${REPORTS_MAX} reports are being collected already; wait for one of them to end`,
          { limit: REPORTS_MAX },
        );
      }
      const collector = new RunCollector(() => clock.nowMs(), runsMax);
      collector.sample(cluster);
      const stopObserving = context.get(BRIDGE).observe(collector.hooks);
      const timers = [context.every(SAMPLE_MS, () => collector.sample(cluster))];
      const profile = isSampled ? new ProfileReader(context, clock.nowMs()) : undefined;
      if (profile !== undefined) {
        const readProfile = (): void =>
          inBackground(profile.read(), 'a report could not read the samples of workers');
        readProfile();
        timers.push(context.every(PROFILE_MS, readProfile));
      }
      const id = ++count;
      open.set(id, { collector, client, profile, timers, stopObserving });
      return id;
    };
    context.command('start', { access: 'client', parameters: NO_PARAMETERS }, (_, { client }) =>
      begin(client, RUNS_MAX, true),
    );
    const explain = async (seconds: number, client?: string): Promise<Explanation> => {
      const id = begin(client, EXPLAIN_RUNS_MAX, false);
      const untilMs = clock.nowMs() + 1000 * seconds;
      while (clock.nowMs() < untilMs && open.get(id)?.collector.isFull === false)
        await pause(LOOK_MS, undefined, { ref: false });
      const found = end(id);
      if (found === undefined) return { summary: [], findings: [] };
      const { summary, findings } = reportOf(found.collector.finish(cluster));
      return { summary, findings: findings.filter(({ rule }) => rule !== 'unfinished') };
    };
    context.command(
      'explain',
      { access: 'client', parameters: REPORT_PARAMETERS.explain },
      ({ seconds = EXPLAIN_S }, { client }) => explain(seconds, client),
    );
    context.command(
      'stop',
      { access: 'client', parameters: REPORT_PARAMETERS.stop },
      async ({ id }, { client }) => {
        const found = open.get(id);
        if (found === undefined || found.client !== client) {
          throw new YardmasterError(
            'ERR_PROTOCOL',
            `there is no report ${String(id)}: it has ended, or the scheduler is another one`,
            { id },
          );
        }
        end(id);
        const history = found.collector.finish(cluster);
        const profile = await found.profile?.answer();
        return packHistory({ ...history, profile });
      },
    );
    return {
      clientRemoved: ({ key }) => {
        for (const [id, { client }] of open) if (client === key) end(id);
      },
    };
  },
});
