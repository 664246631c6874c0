/**
 * Replays recorded cases of the real Dask scheduler: `npm run conformance -- DIR [--part NAME]`.
 * DIR has one folder per part; the last line is `N passed, N failed`, the exit code says the same.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Command } from 'commander';
import { runAmmTrace } from './amm-traces.ts';
import { type Decision, runDecision } from './decide-decisions.ts';
import { runTables, type UnitTables } from './decide-tables.ts';
import { runTrace, traceFromSteps } from './decide-traces.ts';
import { runTransitionCase, type TransitionCase } from './decide-transitions.ts';
import { type PeakCase, type PropertyCase, runPeaks, runProperties } from './order.ts';
import { type CaseResult, type PartResult, printReport } from './report.ts';
import { runStealing, type StealTrace } from './stealing.ts';
import type { Trace } from './trace-format.ts';

const PARTS = ['order', 'stealing', 'amm', 'decide'] as const;
type Part = (typeof PARTS)[number];

const program = new Command('conformance')
  .description('Replays recorded cases of the real Dask scheduler and compares what happens.')
  .argument('<dir>', 'folder with the parts order, stealing, amm, decide (any of them)')
  .option('--part <name>', `only this part: ${PARTS.join(', ')}`)
  .parse();

const [directory] = program.args as [string];
const { part: only } = program.opts<{ part?: string }>();
if (only !== undefined && !(PARTS as readonly string[]).includes(only)) {
  program.error(`unknown part "${only}"; there are ${PARTS.join(', ')}`);
}
if (!existsSync(directory)) program.error(`there is no folder ${directory}`);

const results = PARTS.filter((part) => only === undefined || part === only).flatMap(runPart);
process.exitCode = printReport(results, (line) => process.stdout.write(`${line}\n`));

function runPart(part: Part): PartResult[] {
  const folder = join(directory, part);
  if (!existsSync(folder)) {
    return only === part ? [{ part, cases: [], skipped: `no folder ${folder}` }] : [];
  }
  if (part === 'amm') return [{ part, cases: ammCases(folder) }];
  if (part === 'stealing') {
    const { cases = [] } = readJson<{ cases: StealTrace[] }>(join(folder, 'cases.json.gz')) ?? {};
    return [{ part, cases: cases.map(runStealing) }];
  }
  return part === 'order' ? orderParts(folder) : decideParts(folder);
}

function orderParts(folder: string): PartResult[] {
  const tests = readJson<{ cases: PropertyCase[] }>(join(folder, 'tests.json.gz'));
  const graphs = readLines<PeakCase>(join(folder, 'graphs.jsonl.gz'));
  return [runProperties(tests?.cases ?? []), runPeaks(graphs)];
}

function ammCases(folder: string): CaseResult[] {
  return (readJson<Trace[]>(join(folder, 'cases.json.gz')) ?? []).map(runAmmTrace);
}

function decideParts(folder: string): PartResult[] {
  const hand = readJson<Trace[]>(join(folder, 'hand.json.gz')) ?? [];
  const random = readLines<Parameters<typeof traceFromSteps>[0]>(join(folder, 'random.jsonl.gz'));
  const decisions = readLines<Decision>(join(folder, 'decisions.jsonl.gz'));
  const transitions = readJson<{ cases: TransitionCase[] }>(join(folder, 'transitions.json.gz'));
  const tables = readJson<UnitTables>(join(folder, 'unit-tables.json.gz')) ?? {};
  return [
    { part: 'decide/hand', cases: hand.map(runTrace) },
    { part: 'decide/random', cases: random.map((line) => runTrace(traceFromSteps(line))) },
    { part: 'decide/decisions', cases: decisions.map(runDecision) },
    { part: 'decide/transitions', cases: (transitions?.cases ?? []).map(runTransitionCase) },
    { part: 'decide/unit-tables', cases: runTables(tables) },
  ];
}

function readText(file: string): string | undefined {
  return existsSync(file) ? gunzipSync(readFileSync(file)).toString('utf8') : undefined;
}

function readJson<T>(file: string): T | undefined {
  const text = readText(file);
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

function readLines<T>(file: string): T[] {
  const lines = (readText(file) ?? '').split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as T);
}
