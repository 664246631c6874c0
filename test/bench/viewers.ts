/**
 * What open pages of the dashboard cost the scheduler: `npm run bench -- viewers`. One client submits at a constant rate
 * for the whole time, and short rounds without and with pages take turns, so that both meet the same machine. Each round
 * counts the CPU of the scheduler's process and the tasks that finished. Prints a JSON line for each pair of rounds, and
 * one with the medians at the end.
 */
import type { ChildProcess } from 'node:child_process';
import { loadavg } from 'node:os';
import { Command } from 'commander';

import { tuneEngine } from '../../adapters/cli/flags.ts';
import { answerOf, type LoadedScheduler, pause, self, startLoaded } from './dashboard-load.ts';
import { print, round } from './side-by-side.ts';

/** After pages were opened or closed, until what that cost is over. */
const SETTLE_MS = 800;

/** In the beginning, until the hot paths are compiled. */
const WARM_UP_MS = 5000;

tuneEngine();

const program = new Command('npm run bench -- viewers')
  .description('CPU of the scheduler per task, with and without open pages of the dashboard.')
  .argument('[viewers...]', 'numbers of viewers', ['1', '10'])
  .option('--rate <number>', 'tasks each second', '20000')
  .option('--round <seconds>', 'length of a round', '1.5')
  .option('--workers <number>', 'workers', '100')
  .option('--rounds <number>', 'pairs of rounds for each number of viewers', '15')
  .option('--page <name>', 'what the pages show: status or tasks', 'status')
  .parse();
const options = program.opts<{
  readonly rate: string;
  readonly round: string;
  readonly workers: string;
  readonly rounds: string;
  readonly page: string;
}>();

/** What a round measured. */
interface Round {
  readonly usPerTask: number;
  readonly tasksPerS: number;
  readonly kBPerSAndViewer: number;
}

const loaded = await startLoaded(Number(options.workers));
const client = loaded.client(Number(options.rate), Number.MAX_SAFE_INTEGER, 'drop');
await pause(WARM_UP_MS);
for (const viewers of (program.processedArgs[0] as readonly string[]).map(Number)) {
  await compare(viewers, Number(options.rounds));
}
client.kill();
await loaded.close();

async function compare(viewers: number, pairs: number): Promise<void> {
  const without: Round[] = [];
  const withPages: Round[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    // What grows or shrinks with time weighs on both alike.
    const order = pair % 2 === 0 ? [0, viewers] : [viewers, 0];
    for (const count of order) (count === 0 ? without : withPages).push(await turn(loaded, count));
    const [a, b] = [without.at(-1), withPages.at(-1)];
    if (a === undefined || b === undefined) continue;
    print({
      ...{ bench: 'viewers', viewers, page: options.page, tasksPerS: b.tasksPerS },
      ...{ usPerTaskWithout: a.usPerTask, usPerTask: b.usPerTask },
      morePercent: round(100 * (b.usPerTask / a.usPerTask - 1)),
      ...{ kBPerSAndViewer: b.kBPerSAndViewer, load: round(loadavg()[0] ?? 0) },
    });
  }
  const ratios = withPages.map(({ usPerTask }, k) => {
    return 100 * (usPerTask / (without[k]?.usPerTask ?? usPerTask) - 1);
  });
  const perTask = ({ usPerTask }: Round): number => usPerTask;
  print({
    ...{ bench: 'viewers', viewers, page: options.page, pairs, summary: 'medians' },
    usPerTaskWithout: quantile(without.map(perTask), 0.5),
    usPerTask: quantile(withPages.map(perTask), 0.5),
    morePercent: quantile(ratios, 0.5),
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
  });
}

/** Opens so many pages, measures, and closes them. */
async function turn({ running, at }: LoadedScheduler, viewers: number): Promise<Round> {
  const pages = viewers === 0 ? undefined : self('feed-pages', at, String(viewers), options.page);
  if (pages !== undefined) await answerOf(pages);
  await pause(SETTLE_MS);
  const before = await figures(running.scheduler.cluster, pages);
  await pause(1000 * Number(options.round));
  const after = await figures(running.scheduler.cluster, pages);
  if (pages !== undefined) {
    pages.kill();
    // Tasks are recorded for a while after the last viewer: the round without one must not pay for it.
    await running.scheduler.removePlugin('dashboard');
    const port = Number(new URL(at).port);
    await running.scheduler.addPlugin('dashboard', { options: { port } });
  }
  const seconds = (after.atMs - before.atMs) / 1000;
  const tasks = after.finished - before.finished;
  const bytes = after.bytes - before.bytes;
  return {
    usPerTask: round((after.cpuUs - before.cpuUs) / tasks),
    tasksPerS: Math.round(tasks / seconds),
    kBPerSAndViewer: round(bytes / 1000 / seconds / Math.max(1, viewers)),
  };
}

interface Figures {
  readonly atMs: number;
  readonly cpuUs: number;
  readonly finished: number;
  readonly bytes: number;
}

async function figures(
  { prefixes }: LoadedScheduler['running']['scheduler']['cluster'],
  pages: ChildProcess | undefined,
): Promise<Figures> {
  pages?.stdin?.write('\n');
  const { bytes } =
    pages === undefined ? { bytes: 0 } : await answerOf<{ readonly bytes: number }>(pages);
  const { user, system } = process.cpuUsage();
  let finished = 0;
  for (const { stateCounts } of prefixes.values()) finished += stateCounts.memory;
  return { atMs: performance.now(), cpuUs: user + system, finished, bytes };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
}
