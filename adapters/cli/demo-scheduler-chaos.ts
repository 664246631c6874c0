import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { countOf } from '../../core/util/values.ts';
import { numbered } from '../app/recorder.ts';
import { textLogger } from '../app/text-log.ts';
import { Client } from '../client/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { demoGraph, type DemoGraph, type NearDuplicates, stageOf } from '../demo/index.ts';
import { removePrivateFolder } from '../log/private-folder.ts';
import { Nanny } from '../nanny/index.ts';
import {
  checkOutcome,
  demoConfig,
  type DemoFlags,
  DoneCount,
  findText,
  KillableScheduler,
  killPlan,
  type LiveView,
  type Outcome,
  outcomeLines,
  type PlannedKill,
  print,
  startLiveView,
} from './demo-run.ts';
import { workerSettings } from './commands/worker.ts';
import { untilDone } from './with-client.ts';

/** Of `--chaos-scheduler` without a number. */
const KILLS = 20;
/** A worker is killed for so many kills of the scheduler, unless `--chaos` says how often. */
const KILLS_PER_WORKER_KILL = 4;
/** A worker that is killed again and again is replaced all the same. */
const NANNY_RULES = { attemptsMax: Infinity, longestDelayMs: 500 };

/**
 * `yardmaster demo --chaos-scheduler`: the scheduler keeps a journal in a process of its own, and is killed again
 * and again while the graph is computed, and workers besides. Returns the exit code: 1 when something is lost.
 */
export async function schedulerChaosCommand(flags: DemoFlags): Promise<number> {
  if (flags.report !== undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      '--report needs a scheduler that lives to the end; leave out --report or --chaos-scheduler',
    );
  }
  const corpus = findText(flags);
  const folder = await mkdtemp(join(tmpdir(), 'yardmaster-demo-'));
  const cluster = new KilledCluster(flags, folder);
  const work = demoGraph(corpus.documents);
  let outcome: Outcome | undefined;
  const code = await untilDone(
    async () => {
      outcome = await cluster.compute(work);
    },
    () => cluster.close(),
  );
  removePrivateFolder(folder);
  if (outcome === undefined) return code;
  for (const line of outcomeLines(outcome, undefined, corpus)) print(line);
  for (const line of cluster.lines) print(line);
  print('One thread does the same without the cluster, to compare.');
  const { isPassed, lines } = checkOutcome(outcome, corpus, flags.workers);
  for (const line of lines) print(line);
  return isPassed && cluster.lost.length === 0 ? code : 1;
}

/** A scheduler, workers and a client, the first two of which are killed meanwhile. */
class KilledCluster {
  /** Keys that the client was said to have lost. */
  readonly lost: string[] = [];
  private scheduler: KillableScheduler | undefined;
  private readonly nannies: Nanny[] = [];
  private client: Client | undefined;
  private readonly kills = { scheduler: 0, worker: 0 };
  private isClosed = false;
  private readonly done = new DoneCount();

  constructor(
    private readonly flags: DemoFlags,
    private readonly folder: string,
  ) {}

  /** The kills that were survived, in lines. */
  get lines(): readonly string[] {
    const { kills, lost, flags } = this;
    const what = lost.length === 0 ? 'nothing was lost' : `LOST: ${lost.join(', ')}`;
    const lines = [
      '',
      `Chaos      ${kills.scheduler} kills of the scheduler, ${kills.worker} of workers: ${what}`,
    ];
    if (flags.record === undefined) return lines;
    const last = recordingOf(flags.record, kills.scheduler);
    const all = kills.scheduler === 0 ? last : `${resolve(flags.record)} to ${last}`;
    return [...lines, `Recordings ${all}, one for each start: yardmaster replay ${last}`];
  }

  /** @throws YardmasterError `ERR_CONNECT` when the scheduler ends by itself; `ERR_LOST` */
  async compute(work: DemoGraph): Promise<Outcome> {
    const plan = this.planFor(work.taskCount);
    const { scheduler, client } = await this.start();
    const pids = this.nannies.map(({ pid }) => pid).join(', ');
    print(`Cluster    scheduler at ${scheduler.address}, process ${scheduler.pid}, with a journal`);
    print(`           worker processes ${pids}`);
    print(`Graph      ${countOf(work.taskCount, 'task')}`);
    const view = startLiveView(work.stages, [], process.stderr, print);
    try {
      return await Promise.race([this.computeWith(client, { work, plan, view }), scheduler.failed]);
    } finally {
      view.stop();
    }
  }

  /** The client first: workers and the scheduler are asked to end, and not lost. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.client?.close();
    await Promise.all(this.nannies.map((nanny) => nanny.close(0)));
    await this.scheduler?.close();
  }

  private planFor(taskCount: number): readonly PlannedKill[] {
    const { chaosScheduler, chaos, kill = true, workers } = this.flags;
    const schedulerKills = typeof chaosScheduler === 'number' ? chaosScheduler : KILLS;
    const fewer = Math.ceil(schedulerKills / KILLS_PER_WORKER_KILL);
    const workerKills = typeof chaos === 'number' ? chaos : kill ? fewer : 0;
    const { seed = Date.now() % 1_000_000 } = this.flags;
    print(
      `Chaos      ${schedulerKills} kills of the scheduler and ${workerKills} of workers; --seed ${seed} gives the same moments`,
    );
    return killPlan({ seed, taskCount, schedulerKills, workerKills, workers });
  }

  private async start(): Promise<{ scheduler: KillableScheduler; client: Client }> {
    const { folder, flags } = this;
    const access = join(folder, 'access.json');
    const config = flags.config ?? join(folder, 'scheduler.json');
    const kills = typeof flags.chaos === 'number' ? flags.chaos : KILLS;
    // A task is not to blame for the deaths of its workers.
    await writeFile(join(folder, 'scheduler.json'), JSON.stringify(demoConfig(kills)));
    const scheduler = await KillableScheduler.start((start) => [
      ...['--journal', join(folder, 'journal'), '--access', access, '--config', config],
      ...['--no-dashboard', '--log-level', 'error'],
      ...(flags.record === undefined ? [] : ['--record', recordingOf(flags.record, start)]),
    ]);
    this.scheduler = scheduler;
    const names = Array.from({ length: flags.workers }, (_, index) => `worker-${index}`);
    await Promise.all(names.map((name) => this.startWorker(scheduler.address, name, access)));
    const client = await Client.connect(scheduler.address, {
      access,
      onSchedulerLost: 'reconnect',
      onReconnected: ({ lost }) => this.lost.push(...lost),
    });
    this.client = client;
    return { scheduler, client };
  }

  /** Resolves when it is there. */
  private async startWorker(address: string, name: string, access: string): Promise<void> {
    const { threads } = this.flags;
    const flags = { name, threads, onSchedulerLost: 'reconnect', logLevel: 'error' } as const;
    const settings = await workerSettings(address, flags);
    let onRegistered = (): void => undefined;
    const registered = new Promise<void>((resolve) => {
      onRegistered = resolve;
    });
    const nanny = new Nanny({
      name,
      settings: { ...settings, access },
      stuckAfterMs: settings.config.stuckAfter,
      retireMs: settings.config.retireTimeout,
      clock: new SystemClock(),
      log: textLogger('demo', 'error'),
      rules: NANNY_RULES,
      onStderr: () => undefined,
      onRegistered,
    });
    this.nannies.push(nanny);
    const died = nanny.ended.then(() => Promise.reject(nanny.deathError()));
    died.catch(() => undefined); // Once it is there, what it has not done is missed in other ways.
    await Promise.race([registered, died]);
  }

  private async computeWith(
    client: Client,
    { work, plan, view }: { work: DemoGraph; plan: readonly PlannedKill[]; view: LiveView },
  ): Promise<Outcome> {
    const startMs = performance.now();
    const futures = client.compute(work.graph, Object.keys(work.graph));
    await client.committed();
    for (const future of futures) {
      const counted = future.settled().then(() => {
        view.done(stageOf(future.key));
        this.done.add();
        if (future.key !== work.answer) future.release();
      });
      inBackground(counted, 'a finished task could not be counted');
    }
    for (const planned of plan) await this.carryOut(planned, view);
    const answer = futures.find(({ key }) => key === work.answer);
    const found = (await answer?.result()) as NearDuplicates;
    const seconds = (performance.now() - startMs) / 1000;
    return { answer: found, taskCount: work.taskCount, seconds };
  }

  private async carryOut({ after, delayMs, worker }: PlannedKill, view: LiveView): Promise<void> {
    await this.done.reaches(after);
    await new Promise((wake) => setTimeout(wake, delayMs));
    if (this.isClosed) return;
    const so = `after ${countOf(this.done.value, 'task')}`;
    if (worker === undefined) {
      const kill = await this.scheduler?.kill();
      if (kill === undefined) return;
      this.kills.scheduler++;
      const away = (kill.awayMs / 1000).toFixed(1);
      view.print(
        `Kill       the scheduler, process ${kill.pid}, ${so}: process ${kill.newPid} continues from the journal after ${away} s`,
      );
      return;
    }
    const nanny = this.nannies[worker];
    if (nanny?.pid === undefined) return; // It was killed a moment ago, and is being replaced.
    const { name, pid } = nanny;
    nanny.kill();
    this.kills.worker++;
    view.print(`Kill       ${name}, process ${pid}, ${so}: what only it held is computed again`);
  }
}

/** A recording for each start of the scheduler: `run.ylog`, `run-2.ylog`, … */
function recordingOf(file: string, start: number): string {
  return start === 0 ? resolve(file) : numbered(resolve(file), start + 1);
}
