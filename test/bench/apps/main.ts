/**
 * Applications side by side: wall, CPU and peak memory of each way to write them, medians of rounds in which the ways take
 * turns, and their lines of code.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { type Cost, costOf, killAfter } from './process-tree.ts';
import { APPLICATIONS, type Application, type Program } from './programs.ts';

const MB = 1_000_000;

const command = new Command('npm run bench -- apps')
  .description(
    'Applications written with Yardmaster, and with what an engineer would otherwise take.',
  )
  .argument('[names...]', Object.keys(APPLICATIONS).join(', '), Object.keys(APPLICATIONS))
  .option('--resume', 'instead: kill at half time, and say what those that resume have to do again')
  .option('--size <number>', 'of the data; 1 takes about a minute', '1')
  .option('--rounds <number>', 'runs of each', '5')
  .option('--data <folder>', 'where data is made and kept', join(tmpdir(), 'yardmaster-bench'))
  .parse();
const options = command.opts<{
  size: string;
  rounds: string;
  data: string;
  resume?: true;
}>();

for (const name of command.processedArgs[0] as string[]) {
  const make = APPLICATIONS[name];
  if (make === undefined) {
    throw new Error(`no application "${name}": ${Object.keys(APPLICATIONS).join(', ')}`);
  }
  const folder = join(options.data, `${name}-${options.size}`);
  mkdirSync(folder, { recursive: true });
  const application = make(Number(options.size), folder);
  await application.generate();
  if (options.resume === true) await printResumed(name, application);
  else print(name, await compare(application));
}

async function compare({ programs }: Application): Promise<Map<Program, Cost[]>> {
  const taken = new Map<Program, Cost[]>(programs.map((program) => [program, []]));
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [program, costs] of taken) {
      empty(program.cwd);
      await program.before?.();
      costs.push(await costOf(program.args, program.cwd, program.use));
    }
  }
  return taken;
}

/**
 * Of each program that resumes: how many of its results were kept when it was killed at half of its time, and the CPU of
 * a whole run and of the one that resumes, each with its start.
 */
async function printResumed(name: string, { programs }: Application): Promise<void> {
  for (const { name: way, args, cwd } of programs) {
    if (!way.endsWith('resumes')) continue;
    const rounds: { all: number; again: number; wholeMs: number; againMs: number }[] = [];
    for (let round = 0; round < Number(options.rounds); round++) {
      empty(cwd);
      const whole = await costOf(args, cwd);
      const all = keptIn(join(cwd, 'results'));
      empty(cwd);
      await killAfter(args, cwd, whole.wallMs / 2);
      const again = all - keptIn(join(cwd, 'results'));
      const resumed = await costOf(args, cwd);
      if (resumed.output.split('\n')[0] !== whole.output.split('\n')[0]) {
        throw new Error(`${way} resumed with another result: ${resumed.output}`);
      }
      rounds.push({ all, again, wholeMs: whole.cpuMs, againMs: resumed.cpuMs });
    }
    rounds.sort((a, b) => a.againMs / a.wholeMs - b.againMs / b.wholeMs);
    const {
      all = 0,
      again = 0,
      wholeMs = 0,
      againMs = 0,
    } = rounds[Math.floor(rounds.length / 2)] ?? {};
    const seconds = [againMs, wholeMs].map((ms) => (ms / 1000).toFixed(1));
    process.stdout.write(
      `${name}, ${way}: ${again} of ${all} results again (${percent(again / all)}), ` +
        `${seconds[0]} of ${seconds[1]} s of CPU (${percent(againMs / wholeMs)})\n`,
    );
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

/** Results in a folder: files, and records in packs. */
function keptIn(folder: string): number {
  if (!existsSync(folder)) return 0;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const packs = names.filter((name) => name.endsWith('.pack'));
  const packed = packs.map(
    (name) => readFileSync(join(folder, name), 'latin1').split('YMP1').length - 1,
  );
  return packed.reduce((sum, count) => sum + count, names.filter(isResultFile).length);
}

function isResultFile(name: string): boolean {
  return /(^|\/)[0-9a-f]{64}$/.test(name);
}

function empty(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
}

function print(name: string, taken: ReadonlyMap<Program, readonly Cost[]>): void {
  const rows = [...taken].map(([program, costs]) => [
    program.name,
    (median(costs, 'wallMs') / 1000).toFixed(1),
    (median(costs, 'cpuMs') / 1000).toFixed(1),
    (median(costs, 'peakBytes') / MB).toFixed(0),
    String(linesOf(program)),
  ]);
  const table = [[name, 'wall s', 'CPU s', 'peak MB', 'lines'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((at) => Math.max(...table.map((row) => row[at]?.length ?? 0)));
  for (const row of table) {
    const cells = row.map((cell, at) =>
      at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0),
    );
    process.stdout.write(`${cells.join('  ')}\n`);
  }
  // What says something else than the first is shown.
  const [lines] = [...taken.values()].map(([cost]) => cost?.output.split('\n')[0]);
  for (const [program, costs] of taken) {
    for (const { output } of costs) {
      if (output.split('\n')[0] !== lines) process.stdout.write(`${program.name}: ${output}\n`);
    }
  }
}

function median(costs: readonly Cost[], field: 'wallMs' | 'cpuMs' | 'peakBytes'): number {
  const sorted = costs.map((cost) => cost[field]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Lines of code, without comments and empty ones. */
function linesOf({ files }: Program): number {
  const lines = files.flatMap((file) => readFileSync(file, 'utf8').split('\n'));
  return lines.filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line)).length;
}
