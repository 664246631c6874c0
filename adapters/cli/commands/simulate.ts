import { YardmasterError } from '../../../core/api/index.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf } from '../../../core/util/values.ts';
import {
  loadWorkload,
  readVariant,
  Simulation,
  type SimulationReport,
} from '../../simulator/index.ts';
import { codeDigest, plainVariant } from '../../simulator/lab/runs.ts';
import { collecting, RunCollector, reportOf } from '../../report/index.ts';
import { type ClusterFlags, clusterOptions } from '../cluster-flags.ts';
import { checkOutput } from '../command-line.ts';
import { say } from '../terminal.ts';
import { writeReport } from './report.ts';

export interface SimulateFlags extends ClusterFlags {
  readonly config?: string;
  readonly policies?: string;
  readonly seed: number;
  readonly output?: string;
  readonly json?: boolean;
}

export async function simulateCommand(name: string, flags: SimulateFlags): Promise<number> {
  const { policies, seed, json, output } = flags;
  checkOutput(output, name);
  const variant = policies === undefined ? undefined : await readVariant(policies);
  const workload = await loadWorkload(name);
  const { config = flags.config, overrides } = variant ?? {};
  if (flags.config !== undefined && config !== flags.config) {
    const message = `--policies ${String(policies)} is a configuration, and --config names another one; leave one out`;
    throw new YardmasterError('ERR_CONFIG', message);
  }
  const options = { config, overrides, ...clusterOptions(flags), seed };
  const begunMs = performance.now();
  const simulation = await Simulation.start(options);
  const collector = new RunCollector(() => simulation.nowMs);
  let report: SimulationReport;
  try {
    if (output !== undefined) await simulation.scheduler.addPlugin(collecting(collector));
    simulation.submit(workload);
    await simulation.run();
    report = simulation.report();
  } finally {
    await simulation.close();
  }
  const shown = { ...options, ...(variant === undefined ? {} : plainVariant(variant)) };
  const about = { version: codeDigest(), ...report, options: shown };
  if (output !== undefined) {
    const history = collector.finish(simulation.kernel.cluster);
    await writeReport(output, { title: `${name}, seed ${seed}` }, reportOf(history), about);
  }
  const tookS = (performance.now() - begunMs) / 1000;
  const text = json === true ? JSON.stringify(about, undefined, 2) : reportText(report, tookS);
  say(`${text}\n`);
  return report.failed === 0 && report.useless === undefined ? 0 : 1;
}

function reportText(report: SimulationReport, tookS: number): string {
  const { failed, firstFailure = '', useless } = report;
  return [
    `${report.workload}: ${countOf(report.tasks, 'task')}, ${countOf(report.runs, 'run')}, seed ${report.seed}`,
    `makespan          ${report.makespanS.toFixed(3)} s, simulated in ${tookS.toFixed(1)} s`,
    `idle              ${(100 * report.idleShare).toFixed(1)} %`,
    `moved             ${sizeText(report.movedBytes)} in ${countOf(report.transfers, 'transfer')}`,
    `peak of a worker  ${sizeText(report.peakWorkerBytes)}`,
    `spilled           ${sizeText(report.spilledBytes)}`,
    `decisions         ${report.decisions}, ${countOf(report.transitions, 'transition')}`,
    `fallbacks         ${report.fallbacks}`,
    `trace             ${report.traceHash}`,
    ...(useless === undefined ? [] : [`error             ${useless}`]),
    ...(failed === 0 ? [] : [`failed            ${countOf(failed, 'key')}, first ${firstFailure}`]),
  ].join('\n');
}
