import { countOf } from '../../../core/util/values.ts';
import {
  loadWorkload,
  readVariant,
  simulate,
  type SimulationReport,
} from '../../simulator/index.ts';
import { type ClusterFlags, clusterOptions } from '../cluster-flags.ts';
import { say, sizeText } from '../terminal.ts';

/** Flags of `simulate`. */
export interface SimulateFlags extends ClusterFlags {
  readonly config?: string;
  readonly policies?: string;
  readonly seed: number;
  readonly json?: boolean;
}

/** `yardmaster simulate`. */
export async function simulateCommand(name: string, flags: SimulateFlags): Promise<number> {
  const { config, policies, seed, json } = flags;
  const variant = policies === undefined ? undefined : await readVariant(policies);
  const workload = await loadWorkload(name);
  const begunMs = performance.now();
  const report = await simulate(workload, {
    config,
    ...variant,
    ...clusterOptions(flags),
    seed,
  });
  const tookS = (performance.now() - begunMs) / 1000;
  const text = json === true ? JSON.stringify(report, undefined, 2) : reportText(report, tookS);
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
