import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { countOf } from '../../../core/util/values.ts';
import { LocalCluster } from '../../app/local-cluster.ts';
import { removePrivateFolder } from '../../log/private-folder.ts';
import { textLogger } from '../../app/text-log.ts';
import type { Client } from '../../client/index.ts';
import {
  type Corpus,
  type DemoGraph,
  demoGraph,
  type NearDuplicates,
  stageOf,
} from '../../demo/index.ts';
import {
  Chaos,
  checkOutcome,
  demoConfig,
  type DemoFlags,
  DemoStats,
  findText,
  type LiveView,
  type Outcome,
  outcomeLines,
  PASTE,
  print,
  startLiveView,
  whyLine,
} from '../demo-run.ts';
import { schedulerChaosCommand } from '../demo-scheduler-chaos.ts';
import { untilDone } from '../with-client.ts';

/** Of `--chaos` without a number. */
const KILLS = 10;
/** Deaths of workers that a task is not to blame for, without chaos. */
const ALLOWED_FAILURES = 3;
/** Share of the work after which a worker is killed, unless there is chaos. */
const HALF = 0.5;
/** Decisions that are recorded, to say why. */
const DECISIONS = 100;

/** `yardmaster demo`. Returns the exit code: 1 when the check fails. */
export async function demoCommand(flags: DemoFlags): Promise<number> {
  if (flags.chaosScheduler !== undefined) return schedulerChaosCommand(flags);
  const report = await reportPath(flags);
  const stats = new DemoStats();
  const voice: Voice = { say: (text) => void process.stderr.write(text) };
  let cluster: LocalCluster | undefined;
  let done: { readonly corpus: Corpus; readonly outcome: ExplainedOutcome } | undefined;
  const code = await untilDone(
    async (isCutOff) => {
      cluster = await startCluster(flags, voice);
      const workers = cluster.scaleTo(flags.workers);
      workers.catch(() => undefined); // They are awaited below.
      await setImmediate(); // The processes start while the text is looked for.
      const corpus = findText(flags);
      print(`Dashboard  ${cluster.dashboardUrl ?? ''}`);
      const outcome = await computeOn(cluster, {
        corpus,
        workers,
        stats,
        flags,
        report,
        voice,
        isCutOff,
      });
      if (outcome !== undefined) done = { corpus, outcome };
    },
    async () => cluster?.close(),
  );
  if (done !== undefined) return conclude(flags, done, stats, report) ? code : 1;
  if (flags.report === undefined) removePrivateFolder(dirname(report));
  return code;
}

/** Says what came of it, and whether one thread agrees. */
function conclude(
  flags: DemoFlags,
  { corpus, outcome }: { readonly corpus: Corpus; readonly outcome: ExplainedOutcome },
  stats: DemoStats,
  report: string,
): boolean {
  for (const line of outcomeLines(outcome, stats, corpus)) print(line);
  print(`\nWhy        ${outcome.why}`);
  print(`Report     ${pathToFileURL(report).href}`);
  if (flags.record !== undefined) {
    print(`Recording  ${resolve(flags.record)}: yardmaster replay ${flags.record}`);
  }
  print(
    `\nTen lines of your own, as squares.mjs in a folder with yardmaster installed:\n\n${PASTE}\n`,
  );
  print('One thread does the same without the cluster, to compare.');
  const { isPassed, lines } = checkOutcome(outcome, corpus, flags.workers, stats);
  for (const line of lines) print(line);
  return isPassed;
}

/** In a new folder for temporary files, so that nothing of the reader's is overwritten. */
async function reportPath({ report }: DemoFlags): Promise<string> {
  if (report !== undefined) return resolve(report);
  return join(await mkdtemp(join(tmpdir(), 'yardmaster-demo-')), 'report.html');
}

/** The output for warnings of the cluster: between the bars, while there are any. */
interface Voice {
  say: (text: string) => void;
}

/** Without workers, so that the dashboard can be opened before they are there. */
function startCluster(
  { threads, config, chaos, record }: DemoFlags,
  voice: Voice,
): Promise<LocalCluster> {
  const from = config ?? demoConfig(chaos === undefined ? ALLOWED_FAILURES : killsOf(chaos));
  const recorded = record === undefined ? {} : { record };
  const log = process.stderr.isTTY
    ? {
        log: textLogger('cluster', 'warn', (text) => voice.say(text)),
        onStderr: (text: string) => voice.say(text),
      }
    : {};
  return LocalCluster.start({
    ...{
      mode: 'processes',
      workers: 0,
      threads,
      dashboard: true,
      config: from,
      ...recorded,
      ...log,
    },
  });
}

interface Work {
  readonly corpus: Corpus;
  /** Resolves when they are there. */
  readonly workers: Promise<void>;
  readonly stats: DemoStats;
  readonly flags: DemoFlags;
  readonly report: string;
  readonly voice: Voice;
  readonly isCutOff: () => boolean;
}

interface ExplainedOutcome extends Outcome {
  /** An explanation why one of its tasks ran where it did. */
  readonly why: string;
}

/** Undefined: it was cut off before it began. */
async function computeOn(
  cluster: LocalCluster,
  { corpus, workers, stats, flags, report, voice, isCutOff }: Work,
): Promise<ExplainedOutcome | undefined> {
  const work = demoGraph(corpus.documents);
  print(`Cluster    scheduler at ${cluster.address}, worker processes ${cluster.pids.join(', ')}`);
  print(`Graph      ${countOf(work.taskCount, 'task')}`);
  const names = Array.from({ length: flags.workers }, (_, index) => `worker-${index}`);
  const view = startLiveView(work.stages, names, process.stderr, print);
  const direct = voice.say;
  voice.say = (text) => {
    for (const line of text.trimEnd().split('\n')) view.print(line);
  };
  try {
    await cluster.scheduler.addPlugin(stats);
    const client = await cluster.client();
    await client.policies.recordDecisions(DECISIONS);
    const chaos = chaosIn(cluster, work.taskCount, flags, view);
    stats.onDone = (key, worker, isAgain) => {
      view.done(stageOf(key), worker, isAgain);
      chaos?.onProgress(stats.tasksDone);
    };
    await workers;
    if (isCutOff()) return undefined;
    const title = `near-duplicates among ${countOf(corpus.documents.length, 'file')}`;
    const outcome = await client.report(report, () => compute(client, work), { title });
    if (flags.chaos !== undefined && chaos !== undefined) {
      view.print(
        `Chaos      ${chaos.killCount} of ${countOf(killsOf(flags.chaos), 'kill')}, ${countOf(stats.tasksAgain, 'task')} computed once more`,
      );
    }
    return outcome;
  } finally {
    voice.say = direct;
    view.stop();
  }
}

async function compute(client: Client, work: DemoGraph): Promise<ExplainedOutcome> {
  const startMs = performance.now();
  const futures = client.compute(work.graph, [work.answer]);
  const [answer] = await client.gather(futures);
  const seconds = (performance.now() - startMs) / 1000;
  const { workers } = await client.identity();
  const stories = await Promise.all(futures.map((future) => client.why(future)));
  const names = new Map(workers.map(({ address, name }) => [address, name]));
  return {
    answer: answer as NearDuplicates,
    taskCount: work.taskCount,
    seconds,
    why: whyLine(stories, (address) => names.get(address) ?? address),
  };
}

function killsOf(chaos: DemoFlags['chaos']): number {
  return typeof chaos === 'number' ? chaos : KILLS;
}

function chaosIn(
  cluster: LocalCluster,
  taskCount: number,
  flags: DemoFlags,
  view: LiveView,
): Chaos | undefined {
  const { seed = Date.now() % 1_000_000, kill = true } = flags;
  const common = { seed, taskCount, cluster: cluster.scheduler.cluster };
  if (flags.chaos === undefined) {
    if (!kill) return undefined;
    return new Chaos({
      ...{ ...common, kills: 1, moments: [HALF] },
      onKill: (worker, pid, done) =>
        view.print(
          `Kill       ${worker}, process ${pid}, after ${countOf(done, 'task')}: its results are computed again`,
        ),
    });
  }
  const kills = killsOf(flags.chaos);
  view.print(
    `Chaos      ${countOf(kills, 'time')} a worker will be killed; --seed ${seed} gives the same moments`,
  );
  return new Chaos({
    ...{ ...common, kills },
    onKill: (worker, pid, done) =>
      view.print(`Chaos      killed ${worker}, process ${pid}, after ${countOf(done, 'task')}`),
  });
}
