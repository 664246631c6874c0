/** The examples of the guide run, and print what the guide says. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadWorkload } from '../../../adapters/simulator/index.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;
const run = promisify(execFile);
const guide = readFileSync(join(ROOT, 'docs/simulator.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-simulator-'));
mkdirSync(join(folder, 'node_modules'));
symlinkSync(ROOT, join(folder, 'node_modules', 'yardmaster'));
writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function output(file: string): Promise<string> {
  const [, code] = new RegExp(`^\`\`\`js\\n(// ${file}\\n.*?)^\`\`\`$`, 'ms').exec(guide) ?? [];
  writeFileSync(join(folder, file), code!);
  return (await run(process.execPath, [file], { cwd: folder })).stdout;
}

test('the graph in DOT has costs, and the recorder of Dask is where the guide says', async () => {
  writeFileSync(join(folder, 'graph.dot'), /^digraph \{ .*?^\}$/ms.exec(guide)![0]);
  const { durationsS, nbytes, tasks } = await loadWorkload(join(folder, 'graph.dot'));
  expect([...durationsS, ...nbytes, tasks[0]?.prefix]).toEqual([1.5, 0.4, 20e6, 0, 'read']);
  const [path] = /node_modules\/yardmaster\/dist\/\S+/.exec(guide)!;
  expect(existsSync(join(folder, path, 'dask_graph.py'))).toBe(true);
});

test('the plan of a cluster prints what the guide says', async () => {
  const printed = await output('plan.js');
  expect(guide).toContain(`\`\`\`\n${printed}\`\`\``);
});

test('the evening with a lost worker ends well', async () => {
  expect(await output('evening.js')).toBe('78 true 0\n');
});

describe('a heuristic in an hour', () => {
  const [chapter] = /^## Your heuristic in an hour$.*?(?=^## )/ms.exec(guide)!;
  const commands = [...chapter.matchAll(/^yardmaster (.*)$/gm)].map(([, line]) => line!);
  const cli = join(ROOT, 'dist/bundle/cli.js');
  const results = (place: string): string =>
    readFileSync(join(folder, place, 'results/corpus.json'), 'utf8');

  beforeAll(() => {
    for (const [, code = '', file = ''] of chapter.matchAll(
      /^```\w+\n((?:\/\/|#) (\S+)\n.*?)^```$/gms,
    )) {
      writeFileSync(join(folder, file), code);
    }
    const graph = ['load', 'clean'].map((_, at) => {
      return {
        d: 1,
        e_d: 1,
        cpus: 1,
        outputs: [{ s: 1, e_s: 1 }],
        inputs: at === 0 ? [] : [[0, 0]],
      };
    });
    const row = JSON.stringify(graph);
    const set = { graph_name: { 31: 'rg', 32: 'rg' }, graph: { 31: row, 32: row } };
    mkdirSync(join(folder, 'graphs'));
    writeFileSync(join(folder, 'graphs/rg.json'), JSON.stringify(set));
  });

  test('every command of the guide works, and says what the guide says that it does', async () => {
    const printed: string[] = [];
    for (const command of commands) {
      printed.push(
        (await run(process.execPath, [cli, ...command.split(' ')], { cwd: folder })).stdout,
      );
    }
    for (const file of ['near.html', 'default.html', 'worst.html', 'results/corpus.html']) {
      expect(existsSync(join(folder, file))).toBe(true);
    }
    const titles = /^policies .*(?= …$)/m.exec(chapter)![0].split(/ {2,}/);
    expect(printed[3]!.split('\n')[0]!.split(/ {2,}/).slice(0, titles.length)).toEqual(titles);
    for (const name of ['dask', 'default', './near.js']) {
      expect(printed[3]).toMatch(new RegExp(`^${name} +[01]\\.\\d{3} `, 'm'));
    }
    expect(printed[5]).toMatch(/^nearer.yaml +[01]\.\d{3} /m);
    const made = results('.');
    // Somebody else has the same files elsewhere.
    mkdirSync(join(folder, 'elsewhere'));
    for (const name of ['graphs', 'near.js', 'nearer.yaml']) {
      cpSync(join(folder, name), join(folder, 'elsewhere', name), { recursive: true });
    }
    await run(process.execPath, [cli, ...commands.at(-1)!.split(' ')], {
      cwd: join(folder, 'elsewhere'),
    });
    expect(results('elsewhere')).toBe(made);
    expect(JSON.parse(made)).toMatchObject({
      seeds: 3,
      baseline: 'dask',
      variants: [
        { name: 'dask' },
        {
          overrides: { scheduler: { policies: { workerSelection: { use: './near.js' } } } },
          digest: expect.any(String) as string,
        },
        { name: 'nearer.yaml', config: './nearer.yaml' },
      ],
      settings: [{ options: { network: { bandwidth: 125e6 }, durations: { spread: 0.2 } } }],
      instances: [{ digest: expect.any(String) as string }, {}],
    });
  });
});
