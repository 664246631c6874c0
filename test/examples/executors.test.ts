import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, test } from 'vitest';
import { executorConformance } from '../../adapters/testing/index.ts';
import type { ExecutorDefinition } from '../../core/api/index.ts';
import { exampleProject } from './example-project.ts';

const folder = exampleProject('executors');
afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function definitionIn(file: string): Promise<ExecutorDefinition<object>> {
  const { default: exported } = (await import(join(folder, file))) as {
    default: ExecutorDefinition<object>;
  };
  return exported;
}

const vm = await definitionIn('vm-executor.js');
const python = await definitionIn('python-executor.js');
executorConformance(
  'the executor with contexts of node:vm',
  () => ({
    create: (context) => vm.create(context, { timeout: 1000 }),
    runsInModule: false,
    endsTasks: true,
  }),
  { describe, it },
);
executorConformance(
  'the executor with Python',
  () => ({
    create: (context) => python.create(context, { program: 'python3' }),
    endsTasks: true,
  }),
  { describe, it },
);

test.each(['inline', 'processes'])(
  'a cluster in the mode %s runs tasks with executors that it names',
  async (mode) => {
    const run = promisify(execFile);
    const { stdout, stderr } = await run(process.execPath, ['main.js', mode], { cwd: folder });
    expect([stdout.split('\n'), stderr]).toEqual([
      [
        'squares: 1,4,9',
        'globals: 1,1',
        'ERR_SCRIPT_EXECUTION_TIMEOUT Script execution timed out after 2000ms',
        'median: 2',
        'ERR_CANCELLED',
        '',
      ],
      '',
    ]);
  },
);
