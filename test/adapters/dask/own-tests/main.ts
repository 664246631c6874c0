/**
 * Dask's own tests that look at their scheduler from outside only, played with Dask's scheduler and with ours.
 *
 *     npm run dask:tests -- [--python PATH] [--source REPOSITORY] [--side stock|ours] [--chosen] [--kinds tasks|processes] [-k EXPRESSION] [--json FILE]
 *
 * `--python`: a Python with Dask and pytest (default: the first that is found). `--source`: the Git repository of
 * distributed from which the tests come when the installed package has none (default: that of Dask, or the environment
 * variable DASK_SOURCE). `--side`: only one of the schedulers. `--kinds`: only tests whose workers are in their own process
 * (`tasks`), or not (`processes`). `--chosen`: the selection for CI, in `chosen.txt`; what the
 * release lacks, and what `--limit` (seconds, default 3600) leaves out, counts as skipped. Tests that fail are played
 * once more, each with a scheduler of its own. The last line is `N passed, N failed, N skipped`, of ours when both are played.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findDaskPython } from '../pythons.ts';
import { whyDifferent } from './differences.ts';
import { type Outcome, playTests, type Selection, type Side } from './play.ts';
import { type Installation, withTests } from './sources.ts';

const HERE = new URL('../../../../../test/adapters/dask/own-tests/', import.meta.url);

const { values: flags } = parseArgs({
  options: {
    python: { type: 'string' },
    source: { type: 'string' },
    side: { type: 'string' },
    chosen: { type: 'boolean', default: false },
    kinds: { type: 'string' },
    expression: { type: 'string', short: 'k' },
    json: { type: 'string' },
    limit: { type: 'string', default: '3600' },
  },
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function countsOf(outcomes: ReadonlyMap<string, Outcome>): string {
  const count = (wanted: Outcome['outcome']): number =>
    [...outcomes.values()].filter(({ outcome }) => outcome === wanted).length;
  return `${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
}

/** Plays one side; tests that fail, once more with schedulers of their own. */
async function playSide(
  side: Side,
  python: string,
  installation: Installation,
  scratch: string,
): Promise<Map<string, Outcome>> {
  const start = performance.now();
  const selection: Selection = {
    reuse: true,
    limitS: Number(flags.limit),
    kinds: flags.kinds,
    expression: flags.expression,
    ...(flags.chosen ? { only: await chosenTests() } : {}),
  };
  const outcomes = await playTests(side, python, installation, scratch, selection);
  say(`${side}: ${countsOf(outcomes)} at first`);
  const failed = [...outcomes.values()].filter(({ outcome }) => outcome === 'failed');
  if (failed.length > 0) {
    const only = failed.map(({ test }) => test);
    const again = { only, reuse: false, limitS: Number(flags.limit) };
    for (const outcome of (await playTests(side, python, installation, scratch, again)).values()) {
      outcomes.set(outcome.test, outcome);
    }
  }
  say(`${side}: ${countsOf(outcomes)} in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  return outcomes;
}

async function chosenTests(): Promise<string[]> {
  const text = await readFile(fileURLToPath(new URL('chosen.txt', HERE)), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

/** Names the tests that fail with ours. Returns how many of them have no known reason. */
function report(
  ours: ReadonlyMap<string, Outcome>,
  stock: ReadonlyMap<string, Outcome> | undefined,
): number {
  let unexplained = 0;
  for (const { test, why } of [...ours.values()].filter(({ outcome }) => outcome === 'failed')) {
    const reason = whyDifferent(test);
    const alike = stock !== undefined && stock.get(test)?.outcome !== 'passed';
    say(`--- ${test}: ${alike ? 'fails with both' : (reason ?? 'fails with ours')}\n    ${why}`);
    if (!alike && reason === undefined) unexplained++;
  }
  for (const { test, outcome, why } of stock?.values() ?? []) {
    if (outcome === 'failed' && ours.get(test)?.outcome === 'passed') {
      say(`--- ${test}: fails with the stock scheduler only\n    ${why}`);
    }
  }
  return unexplained;
}

async function main(): Promise<void> {
  const python = flags.python ?? findDaskPython()?.command;
  if (python === undefined) throw new Error('there is no Python with Dask: use --python PATH');
  const source =
    flags.source ?? process.env['DASK_SOURCE'] ?? 'https://github.com/dask/distributed';
  const scratch = await mkdtemp(join(tmpdir(), 'own-tests-'));
  try {
    const installation = withTests(python, source, scratch);
    say(`=== Dask's own tests of distributed ${installation.version}`);
    const played: Partial<Record<Side, Map<string, Outcome>>> = {};
    for (const side of ['stock', 'ours'] as const) {
      if (flags.side !== undefined && flags.side !== side) continue;
      played[side] = await playSide(side, python, installation, scratch);
    }
    if (flags.json !== undefined) await writeFile(flags.json, asJson(played));
    const counted = played.ours ?? played.stock ?? new Map<string, Outcome>();
    const failed =
      played.ours === undefined
        ? [...counted.values()].filter(({ outcome }) => outcome === 'failed').length
        : report(played.ours, played.stock);
    const passed = [...counted.values()].filter(({ outcome }) => outcome === 'passed').length;
    const all = flags.chosen ? (await chosenTests()).length : counted.size;
    say(`${passed} passed, ${failed} failed, ${all - passed - failed} skipped`);
    process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function asJson(played: Partial<Record<Side, Map<string, Outcome>>>): string {
  const lists = Object.entries(played).map(([side, outcomes]) => [side, [...outcomes.values()]]);
  return JSON.stringify(Object.fromEntries(lists), undefined, 1);
}

await main();
