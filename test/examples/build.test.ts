import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';

const UNITS = 120;
/** Imported by three units, and by 14 through others. */
const CHANGED = 'unit0009';

const folder = exampleProject('build', ['piscina', 'typescript']);
const source = join(folder, `src/${CHANGED}.ts`);
const run = async (program: string, ...args: string[]): Promise<string[]> => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    cwd: folder,
  });
  return stdout.trim().split('\n');
};
/** Lines that a program prints, and the outputs of all units. */
async function build(program: string): Promise<{ lines: string[]; outputs: string[] }> {
  const lines = await run(program);
  const out = join(folder, `${program}-out`);
  rmSync(out, { recursive: true, force: true });
  renameSync(join(folder, 'out'), out);
  return { lines, outputs: readdirSync(out).map((file) => readFileSync(join(out, file), 'utf8')) };
}

beforeAll(async () => {
  await run('generate.js', String(UNITS));
  const [main, plain] = [await build('main.js'), await build('plain.js')];
  expect(main.lines.at(-1)).toBe(`${UNITS} of ${UNITS} units compiled`);
  expect(main.outputs).toHaveLength(UNITS);
  expect(main.outputs).toEqual(plain.outputs);
}, 120_000);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('a build with nothing to do compiles nothing and writes what it wrote before', async () => {
  const [main, plain] = [await build('main.js'), await build('plain.js')];
  expect(main.lines).toEqual([`0 of ${UNITS} units compiled`]);
  expect(main.outputs).toEqual(plain.outputs);
}, 60_000);

test('a comment recompiles its unit alone, where the plain program recompiles all that import it', async () => {
  writeFileSync(source, readFileSync(source, 'utf8').replace('Adds up', 'Sums up'));
  const [main, plain] = [await build('main.js'), await build('plain.js')];
  expect(main.lines).toEqual([`${CHANGED} arguments`, `1 of ${UNITS} units compiled`]);
  expect(plain.lines).toEqual([`15 of ${UNITS} units compiled`]);
  expect(main.outputs).toEqual(plain.outputs);
}, 60_000);

test('a change of exported types recompiles the units that import them, and says so', async () => {
  writeFileSync(
    source,
    readFileSync(source, 'utf8').replace('parts: number[] }', 'parts: readonly number[] }'),
  );
  const [main, plain] = [await build('main.js'), await build('plain.js')];
  expect(main.lines).toEqual([
    `${CHANGED} arguments`,
    `unit0010 inputs types of ${CHANGED}`,
    `unit0016 inputs types of ${CHANGED}`,
    `unit0049 inputs types of ${CHANGED}`,
    `4 of ${UNITS} units compiled`,
  ]);
  expect(plain.lines).toEqual([`15 of ${UNITS} units compiled`]);
  expect(main.outputs).toEqual(plain.outputs);
}, 60_000);

test('the build has fewer lines than the plain program', () => {
  const linesOf = (program: string): number =>
    readFileSync(join(folder, program), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('/**')).length;
  expect(linesOf('main.js')).toBeLessThan(27);
  expect(linesOf('plain.js')).toBeGreaterThan(linesOf('main.js'));
});
