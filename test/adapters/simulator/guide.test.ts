/** The examples of the guide run, and print what the guide says. */
import { execFile } from 'node:child_process';
import {
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
import { afterAll, expect, test } from 'vitest';
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
