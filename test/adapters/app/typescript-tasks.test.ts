import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = new URL('../../..', import.meta.url).pathname;

/** The client needs no TypeScript: it names the module and the function. */
const MAIN = `import { LocalCluster, taskOf } from 'yardmaster';
const tasks = new URL('./tasks.ts', import.meta.url).href;
const square = taskOf(tasks, (n) => n * n, 'square');
const cluster = await LocalCluster.start({ mode: process.argv[2], workers: 1 });
const client = await cluster.client();
const future = client.submit(square, 3);
console.log((await future.error())?.message ?? (await future.result()));
await cluster.close();
`;
const TASKS = `import { defineTasks } from 'yardmaster';
import { times } from './times.ts';
interface Sized { readonly n: number }
const sized = (n: number): Sized => ({ n });
export const { square } = defineTasks(import.meta.url, {
  square: (n: number): number => times(sized(n).n, n),
});
`;
const TIMES = 'export function times(a: number, b: number): number { return a * b; }\n';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'yardmaster-typescript-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/yardmaster'));
  const files = { 'package.json': '{ "type": "module" }', 'main.js': MAIN, 'tasks.ts': TASKS };
  for (const [name, code] of Object.entries({ ...files, 'times.ts': TIMES })) {
    writeFileSync(join(folder, name), code);
  }
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const { typescript = false } = process.features as { readonly typescript?: string | false };

test.each(['threads', 'processes'])(
  'workers in %s load modules of tasks in TypeScript where Node strips types, else say so',
  async (mode) => {
    const { stdout } = await run(process.execPath, [join(folder, 'main.js'), mode]);
    if (typescript === 'strip') expect(stdout).toBe('9\n');
    else {
      expect(stdout).toMatch(
        /tasks\.ts could not be imported: Node \S+ cannot load TypeScript; run workers with Node 22\.18 or newer/,
      );
    }
  },
);
