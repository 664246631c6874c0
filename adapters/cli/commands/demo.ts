import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { LocalCluster } from '../../app/local-cluster.ts';
import { textLogger } from '../../app/text-log.ts';
import type { Client } from '../../client/index.ts';
import {
  type Answer,
  type Corpus,
  type DemoGraph,
  demoGraph,
  type Question,
  stageOf,
} from '../../demo/index.ts';
import { Chaos } from '../demo/chaos.ts';
import { CUT, type DemoFlags, findWork, print } from '../demo/demo-flags.ts';
import { type LiveView, startLiveView } from '../demo/live-view.ts';
import { checkOutcome, type Outcome, outcomeLines } from '../demo/outcome.ts';
import { DemoStats } from '../demo/stats.ts';
import { schedulerChaosCommand } from '../demo/scheduler-chaos.ts';
import { PASTE, whyLine } from '../demo/take-away.ts';
import { untilDone } from '../until-stopped.ts';

/** Of `--chaos` without a number. */
const KILLS = 10;
/** Share of the work after which a worker is killed, unless there is chaos. */
const HALF = 0.5;
/** Decisions that are recorded, to say why. */
const DECISIONS = 100;

/** `yardmaster demo`. Returns the exit code: 1 when the check fails. */
export async function demoCommand(flags: DemoFlags): Promise<number> {
  if (flags.chaosScheduler !== undefined) return schedulerChaosCommand(flags);
  const { corpus, question } = findWork(flags);
  const report = await reportPath(flags);
  const stats = new DemoStats();
  const voice: Voice = { say: (text) => void process.stderr.write(text) };
  let cluster: LocalCluster | undefined;
  let outcome: ExplainedOutcome | undefined;
  const code = await untilDone(
    async (isCutOff) => {
      cluster = await startCluster(flags, voice);
      print(`Dashboard  ${cluster.dashboardUrl ?? ''}`);
      await cluster.scaleTo(flags.workers);
      if (isCutOff()) return;
      outcome = await computeOn(cluster, { corpus, question, stats, flags, report, voice });
    },
    async () => cluster?.close(),
  );
  if (outcome === undefined) {
    if (flags.report === undefined) await rm(dirname(report), { recursive: true, force: true });
    return code;
  }
  for (const line of outcomeLines(outcome, stats, corpus, flags.query)) print(line);
  print(`\nWhy        ${outcome.why}`);
  print(`Report     ${pathToFileURL(report).href}`);
  if (flags.record !== undefined) {
    print(`Recording  ${resolve(flags.record)}: yardmaster replay ${flags.record}`);
  }
  print(
    `\nTen lines of your own, as squares.mjs in a folder with yardmaster installed:\n\n${PASTE}\n`,
  );
  const { isPassed, line } = checkOutcome(outcome, corpus, question, CUT.ranges);
  print(line);
  return isPassed ? code : 1;
}

/** In a new folder for temporary files, so that nothing of the reader's is overwritten. */
async function reportPath({ report }: DemoFlags): Promise<string> {
  if (report !== undefined) return resolve(report);
  return join(await mkdtemp(join(tmpdir(), 'yardmaster-demo-')), 'report.html');
}

/** Where warnings of the cluster go: between the bars, while there are any. */
interface Voice {
  say: (text: string) => void;
}

/** Without workers, so that the dashboard can be opened before they are there. */
function startCluster(
  { threads, config, chaos, record }: DemoFlags,
  voice: Voice,
): Promise<LocalCluster> {
  // A task is not to blame for the deaths of its workers, of which there will be many.
  const scheduler = { allowedFailures: killsOf(chaos) };
  const from =
    config !== undefined ? { config } : chaos === undefined ? {} : { config: { scheduler } };
  const recorded = record === undefined ? {} : { record };
  const log = process.stderr.isTTY
    ? {
        log: textLogger('cluster', 'warn', (text) => voice.say(text)),
        onStderr: (text: string) => voice.say(text),
      }
    : {};
  return LocalCluster.start({
    ...{ mode: 'processes', workers: 0, threads, dashboard: true, ...from, ...recorded, ...log },
  });
}

interface Work {
  readonly corpus: Corpus;
  readonly question: Question;
  readonly stats: DemoStats;
  readonly flags: DemoFlags;
  readonly report: string;
  readonly voice: Voice;
}

/** What the cluster came to, and why. */
interface ExplainedOutcome extends Outcome {
  /** Why one of its tasks ran where it did. */
  readonly why: string;
}

async function computeOn(
  cluster: LocalCluster,
  { corpus, question, stats, flags, report, voice }: Work,
): Promise<ExplainedOutcome> {
  await cluster.scheduler.addPlugin(stats);
  const client = await cluster.client();
  const work = demoGraph(corpus.paths, question, CUT);
  print(`Cluster    scheduler at ${cluster.address}, worker processes ${cluster.pids.join(', ')}`);
  print(`Graph      ${work.taskCount} tasks`);
  await client.policies.recordDecisions(DECISIONS);
  const view = startLiveView(work.stages, process.stderr, print);
  const direct = voice.say;
  voice.say = (text) => {
    for (const line of text.trimEnd().split('\n')) view.print(line);
  };
  const chaos = chaosIn(cluster, work.taskCount, flags, view);
  stats.onDone = (key, worker) => {
    view.done(stageOf(key), worker);
    chaos?.onProgress(stats.tasksDone);
  };
  try {
    const title = `index of ${corpus.paths.length} files`;
    const outcome = await client.report(report, () => compute(client, work), { title });
    if (flags.chaos !== undefined && chaos !== undefined) {
      const recomputed = stats.tasksDone - work.taskCount;
      view.print(
        `Chaos      ${chaos.killCount} of ${killsOf(flags.chaos)} kills, ${recomputed} tasks computed once more`,
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
  const futures = client.compute(work.graph, [work.answer, ...work.digests]);
  const [answer, ...digests] = await client.gather(futures);
  const seconds = (performance.now() - startMs) / 1000;
  const { workers } = await client.identity();
  const stories = await Promise.all(futures.map((future) => client.why(future)));
  const names = new Map(workers.map(({ address, name }) => [address, name]));
  return {
    answer: answer as Answer,
    digests: digests as string[],
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
          `Kill       ${worker}, process ${pid}, after ${done} tasks: what it held is computed again`,
        ),
    });
  }
  const kills = killsOf(flags.chaos);
  view.print(
    `Chaos      ${kills} times a worker will be killed; --seed ${seed} gives the same moments`,
  );
  return new Chaos({
    ...{ ...common, kills },
    onKill: (worker, pid, done) =>
      view.print(`Chaos      killed ${worker}, process ${pid}, after ${done} tasks`),
  });
}
