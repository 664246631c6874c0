/** Runs Dask's own tests with pytest, with Dask's scheduler or with ours. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Installation } from './sources.ts';

export type Side = 'stock' | 'ours';

/** What became of a test: a line of the report of `own_tests.py`. */
export interface Outcome {
  readonly test: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly seconds: number;
  /** Of a failed test: the first lines of its error. */
  readonly why: string;
}

/** Modules whose tests use clusters. */
const MODULES = [
  ...[
    'active_memory_manager actor as_completed cancelled_state client client_executor cluster_dump',
    'core dask_collections event_logging events failed_workers locks multi_locks nanny publish queues',
    'reschedule resources scheduler semaphore steal stories stress utils_comm utils_test variable',
    'worker worker_client worker_memory worker_metrics',
  ].flatMap((line) => line.split(' ').map((name) => `tests/test_${name}.py`)),
  ...'graph merge metrics rechunk shuffle'
    .split(' ')
    .map((name) => `shuffle/tests/test_${name}.py`),
  ...'memory_sampler nanny_plugin progress_stream progressbar task_stream widgets worker_plugin'
    .split(' ')
    .map((name) => `diagnostics/tests/test_${name}.py`),
];

/** Scripts are not compiled: they stay in the folder that `dist` was made from. */
const HERE = fileURLToPath(
  new URL('../../../../../test/adapters/dask/own-tests/', import.meta.url),
);
const CLI = createRequire(import.meta.url).resolve('#cli');

export interface Selection {
  /** Names of tests; undefined: all. */
  readonly only?: readonly string[];
  /** Expression of pytest's `-k`. */
  readonly expression?: string;
  /** See `selection.py`; undefined: all. */
  readonly kinds?: string;
  /** Whether one scheduler may serve many tests. */
  readonly reuse: boolean;
  readonly limitS: number;
}

/** Plays the selected tests. What the time limit leaves out is missing in the answer. */
export async function playTests(
  side: Side,
  python: string,
  installation: Installation,
  scratch: string,
  selection: Selection,
): Promise<Map<string, Outcome>> {
  const report = join(scratch, `${side}.jsonl`);
  const names = join(scratch, 'names.txt');
  await rm(report, { force: true });
  if (selection.only !== undefined) await writeFile(names, selection.only.join('\n'));
  const scheduler = ['scheduler', '--dask', '--port', '0', '--dask-port', '0', '--python', python];
  const command = side === 'ours' ? [process.execPath, CLI, ...scheduler] : [];
  const env = {
    PYTHONPATH: [HERE, ...installation.path].join(delimiter),
    PYTHONDONTWRITEBYTECODE: '1',
    OWN_TESTS_COMMAND: JSON.stringify(command),
    OWN_TESTS_REPORT: report,
    OWN_TESTS_LOG: join(scratch, `${side}.log`),
    OWN_TESTS_REUSE: selection.reuse ? '1' : '0',
    OWN_TESTS_KINDS: selection.kinds,
    ...(selection.only === undefined ? {} : { OWN_TESTS_ONLY: names }),
  };
  await pytest(python, installation, env, scratch, selection);
  return existsSync(report) ? outcomes(await readFile(report, 'utf8')) : new Map();
}

async function pytest(
  python: string,
  { folder }: Installation,
  env: NodeJS.ProcessEnv,
  cwd: string,
  selection: Selection,
): Promise<void> {
  const wanted = selection.only?.map((name) => name.split('::')[0]);
  const modules = MODULES.filter((name) => wanted?.includes(name) ?? true)
    .map((name) => join(folder, name))
    .filter((name) => existsSync(name));
  if (modules.length === 0) return;
  const options = ['-c', join(HERE, 'pytest.ini'), '--rootdir', folder, '-p', 'own_tests'];
  // The scheduler writes dumps below its current folder only.
  options.push('--basetemp', join(cwd, 'pytest'));
  const expression = selection.expression === undefined ? [] : ['-k', selection.expression];
  const child = spawn(python, ['-m', 'pytest', ...options, ...expression, ...modules], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
    cwd,
  });
  const timer = setTimeout(() => child.kill('SIGINT'), selection.limitS * 1000);
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
}

/** A test that fails in its fixture as well has failed, whatever the test itself did. */
function outcomes(lines: string): Map<string, Outcome> {
  const found = new Map<string, Outcome>();
  for (const line of lines.trim().split('\n')) {
    const outcome = JSON.parse(line) as Outcome;
    if (found.get(outcome.test)?.outcome !== 'failed') found.set(outcome.test, outcome);
  }
  return found;
}
