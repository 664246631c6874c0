/**
 * The program of the playground's worker: one simulation with a policy that the reader has written, by the scheduler of
 * production. It runs in browsers, so nothing here may import a module of Node; a test holds it to that.
 */
import {
  definePlugin,
  type Logger,
  type SchedulerHooks,
  YardmasterError,
} from '../../core/api/index.ts';
import { checkerOf } from '../../core/config/check.ts';
import { IN_CODE } from '../../core/config/problems.ts';
import { configSchema } from '../../core/config/schema.ts';
import { SERVER_ID } from '../../core/host/tokens.ts';
import { composeScheduler, type Platform } from '../../core/scheduler-host/compose-scheduler.ts';
import { byValue } from '../../core/api/token.ts';
import { loadError } from '../../core/plugin-host/plugin-resolver.ts';
import { hint } from '../../core/shared/words.ts';
import { ammPart } from '../../plugins/amm/settings.ts';
import { workStealingPart } from '../../plugins/work-stealing/settings.ts';
import { deciders } from '../app/builtin-deciders.ts';
import type { Config, ConfigInput } from '../app/config.ts';
import * as policyEntry from '../app/entries/policy.ts';
import type {
  Fault,
  RunAnswer,
  RunRequest,
  RunResult,
  Settings,
} from '../dashboard/page/playground/messages.ts';
import { reportData } from '../report/report-data.ts';
import { analyse } from '../report/analysis.ts';
import { RunCollector } from '../report/run-collector.ts';
import { invalidWorkload, shaped, SHAPES, withCost } from '../workloads/shapes.ts';
import { SimulatedCluster } from '../simulator/simulated-cluster.ts';

/** The most tasks of a workload: more take longer than a reader waits. */
const TASKS_MAX = 20_000;

/** The worker that this program runs in, as far as it uses it. */
const here = globalThis as unknown as {
  onmessage: (event: { readonly data: RunRequest }) => void;
  postMessage(answer: RunAnswer): void;
};

here.onmessage = ({ data: { settings, source } }) => {
  run(settings, source).then(
    (result) => here.postMessage({ result }),
    (error: unknown) => here.postMessage({ fault: faultOf(error) }),
  );
};

const PARTS = [ammPart, workStealingPart];
const checked = checkerOf<Config>(configSchema(PARTS), PARTS);

/** A browser: nothing is imported by name. */
const BROWSER: Platform = {
  inspect: (value) => JSON.stringify(value),
  modules: {
    folder: '',
    locate: (module, what, builtins) => {
      const message = `there is no built-in ${what} "${module}"${hint(module, builtins)}; the playground loads no files`;
      throw loadError(message, module);
    },
    import: () => Promise.resolve({}),
    sourceOf: (path) => path,
  },
  // Nobody connects, and stimuli come from the plugins of this package alone.
  ingress: () => ({
    listen: refuse,
    connectLocal: refuse,
    check: () => undefined,
    stopAccepting: () => undefined,
    close: () => Promise.resolve(),
  }),
};

function refuse(): never {
  throw new YardmasterError('ERR_CLOSED', 'a simulated scheduler has no connections');
}

async function run(settings: Settings, source: string | undefined): Promise<RunResult> {
  const workload = workloadOf(settings.workload);
  const policies = source === undefined ? {} : await policiesOf(source);
  let first: Fault | undefined;
  const note = (fields: object): void => {
    const { err } = fields as { err?: unknown };
    if (YardmasterError.is(err, 'ERR_POLICY')) first ??= faultOf(err);
  };
  const silent = (): void => undefined;
  const log: Logger = { debug: silent, info: silent, warn: silent, error: note };
  const cluster = new SimulatedCluster(
    {
      workers: settings.workers,
      worker: { threads: settings.threads, memoryLimitBytes: settings.memory * 1e6 },
      network: { bandwidth: (settings.link * 1e6) / 8 },
      log,
    },
    nextTurn,
  );
  const collector = new RunCollector(() => cluster.nowMs);
  await cluster.open(async ({ provide, ...given }) => {
    const config = {
      ...checked({ value: { scheduler: { policies } }, origin: IN_CODE }, {}),
      folder: '',
    };
    if (config.error !== undefined) throw config.error;
    const id = byValue(SERVER_ID, 'playground');
    const options = { builtins: deciders, ...given, provide: [...provide, id] };
    return composeScheduler(config, options, BROWSER);
  });
  await cluster.scheduler.addPlugin(watching(collector));
  cluster.submit(workload);
  await cluster.run();
  const { fallbacks, ...report } = cluster.report();
  const history = collector.finish(cluster.kernel.cluster);
  await cluster.close();
  return {
    ...report,
    data: reportData(history, analyse(history)),
    ...(first === undefined ? {} : { faults: { count: fallbacks, first } }),
  };
}

/** Shows a collector each transition, and the memory after it. */
function watching(collector: RunCollector): object {
  return definePlugin({
    name: 'playground',
    apiVersion: 1,
    setup({ cluster }) {
      collector.sample(cluster);
      const hooks: Partial<SchedulerHooks> = collector.hooks;
      return {
        ...hooks,
        taskTransition: (...transition) => {
          hooks.taskTransition?.(...transition);
          collector.sample(cluster);
        },
      };
    },
  });
}

function workloadOf(text: string): ReturnType<typeof withCost> {
  const [name = '', cost] = text.trim().split(/@(.*)/s);
  const made = shaped(name);
  if (made === undefined) {
    const choices = `a shape with its size, such as tree:8, of ${SHAPES.join(', ')}`;
    throw invalidWorkload(
      name,
      `is no workload${hint(name.split(':')[0] ?? '', SHAPES) || '.'} Choose ${choices}`,
    );
  }
  if (made.tasks.length > TASKS_MAX) {
    const many = `has ${made.tasks.length} tasks, and the playground takes ${TASKS_MAX}`;
    throw invalidWorkload(name, `${many}; choose a smaller size, or "yardmaster simulate"`);
  }
  return cost === undefined ? made : withCost(made, text, cost);
}

/** The URL of the reader's module, to find places in it. */
let ownUrl: string | undefined;

const moduleUrl = (source: string): string =>
  URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));

/** Everything that a module exports and that decides something, as a configuration names it. */
async function policiesOf(
  source: string,
): Promise<NonNullable<ConfigInput['scheduler']>['policies']> {
  (globalThis as { yardmaster?: unknown }).yardmaster = policyEntry;
  const api = moduleUrl(
    `export const { ${Object.keys(policyEntry).join(', ')} } = globalThis.yardmaster;`,
  );
  ownUrl = moduleUrl(source.replaceAll(/(['"])yardmaster\/policy\1/g, JSON.stringify(api)));
  const exported = (await import(ownUrl)) as Readonly<Record<string, unknown>>;
  const policies: Record<string, unknown> = {};
  const rules: object[] = [];
  for (const use of Object.values(exported)) {
    const { kind, slot } = (use ?? {}) as { readonly kind?: unknown; readonly slot?: unknown };
    if (kind === 'policy' && typeof slot === 'string') policies[slot] = { use };
    else if (kind === 'rule') rules.push({ use });
  }
  if (rules.length > 0) policies['rules'] = rules;
  if (Object.keys(policies).length > 0) return policies;
  throw loadError(
    'the module exports no policy; write export default definePolicy(slot, { … }), or defineRule({ … })',
    'playground',
  );
}

/** Words for a reader, and the line of the source that the stack of an error, or of its cause, names. */
function faultOf(error: unknown): Fault {
  const message = error instanceof Error ? error.message : String(error);
  for (let at = error; at instanceof Error; at = at.cause) {
    const [, after] = at.stack?.split(ownUrl ?? '\0') ?? [];
    const line = /^:(\d+)/.exec(after ?? '')?.[1];
    if (line !== undefined) return { message, line: Number(line) };
  }
  const advice = /module specifier|resolve/.test(message)
    ? '; here a policy can import from "yardmaster/policy" alone'
    : '';
  return { message: `${message}${advice}` };
}

/** After the jobs of promises; a timer would be later by milliseconds. */
function nextTurn(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener('message', () => {
    port1.close();
    callback();
  });
  port1.start();
  port2.postMessage(undefined);
}
