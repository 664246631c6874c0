/**
 * What open pages of the dashboard cost the scheduler: `npm run bench -- viewers`. Rounds without and with viewers take
 * turns in one cluster, and each round with viewers is compared with the one before it. Prints one JSON line a pair.
 */
import { loadavg } from 'node:os';
import { Command } from 'commander';

import { tuneEngine } from '../../adapters/cli/engine-flags.ts';
import { answerOf, type LoadedScheduler, pause, startLoaded } from './dashboard-load.ts';
import { FeedPage } from './feed-page.ts';
import { print, round } from './side-by-side.ts';

tuneEngine();

const program = new Command('npm run bench -- viewers')
  .description('CPU of the scheduler per task, with and without open pages of the dashboard.')
  .argument('[viewers...]', 'numbers of viewers', ['1', '10'])
  .option('--rate <number>', 'tasks each second', '20000')
  .option('--tasks <number>', 'tasks of a round', '100000')
  .option('--workers <number>', 'workers', '100')
  .option('--rounds <number>', 'pairs for each number of viewers', '3')
  .option('--page <name>', 'what the pages show: status or tasks', 'status')
  .parse();
const options = program.opts<{
  readonly rate: string;
  readonly tasks: string;
  readonly workers: string;
  readonly rounds: string;
  readonly page: string;
}>();

const loaded = await startLoaded(Number(options.workers));
await turn(loaded);
for (let pair = 0; pair < Number(options.rounds); pair++) {
  for (const viewers of (program.processedArgs[0] as readonly string[]).map(Number)) {
    const without = await turn(loaded);
    const pages = Array.from(
      { length: viewers },
      () => new FeedPage(loaded.at, options.page === 'tasks'),
    );
    await pause(1000);
    const before = pages.reduce((sum, { bytes }) => sum + bytes, 0);
    const withThem = await turn(loaded);
    const bytes = pages.reduce((sum, page) => sum + page.bytes, 0) - before;
    for (const page of pages) page.close();
    print({
      ...{ bench: 'viewers', viewers, page: options.page, tasksPerS: withThem.tasksPerS },
      ...{ usPerTaskWithout: without.usPerTask, usPerTask: withThem.usPerTask },
      morePercent: round(100 * (withThem.usPerTask / without.usPerTask - 1)),
      kBPerSAndViewer: round(bytes / 1000 / withThem.seconds / viewers),
      load: round(loadavg()[0] ?? 0),
    });
    // Tasks are recorded for a while after the last viewer: the round without one must not pay for it.
    await loaded.running.scheduler.removePlugin('dashboard');
    await loaded.running.scheduler.addPlugin('dashboard', { options: { port: portOf(loaded.at) } });
  }
}
await loaded.close();

async function turn({ client }: LoadedScheduler): Promise<{
  readonly usPerTask: number;
  readonly tasksPerS: number;
  readonly seconds: number;
}> {
  const tasks = Number(options.tasks);
  const before = process.cpuUsage();
  const { seconds } = await answerOf<{ readonly seconds: number }>(
    client(Number(options.rate), tasks, 'drop'),
  );
  const { user, system } = process.cpuUsage(before);
  await pause(300);
  return {
    usPerTask: round((user + system) / tasks),
    tasksPerS: Math.round(tasks / seconds),
    seconds,
  };
}

function portOf(at: string): number {
  return Number(new URL(at).port);
}
