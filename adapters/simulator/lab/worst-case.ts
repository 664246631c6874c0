import { YardmasterError } from '../../../core/api/index.ts';
import { Draw } from '../random.ts';
import type { SimulationOptions } from '../options.ts';
import { simulate } from '../simulation.ts';
import {
  changed,
  firstInstance,
  type Instance,
  type InstanceLimits,
  instanceWorkload,
  type PolicyVariant,
} from './compare.ts';

/** The options of the search for a bad case. */
export interface WorstCaseOptions extends Omit<SimulationOptions, 'seed' | 'overrides' | 'config'> {
  /** Instances that are tried. Default 400. */
  readonly steps?: number;
  /** Default: 3 to 16 tasks, few enough to be read. */
  readonly limits?: InstanceLimits;
  readonly seed?: number;
  /** Called for each instance that is worse than all before. */
  readonly onWorse?: (found: WorstCase) => void;
}

/** The instance on which one choice of policies was worst beside another. */
export interface WorstCase {
  readonly instance: Instance;
  /** Makespans in seconds under the first and under the second policies. */
  readonly firstS: number;
  readonly secondS: number;
  /** The first divided by the second. */
  readonly ratio: number;
  /** The step that found it; 0: where the search began. */
  readonly step: number;
}

const STEPS = 400;
const LIMITS: InstanceLimits = { fewestTasks: 3, mostTasks: 16 };
/** The search begins by accepting nearly every change, and ends by accepting improvements alone. */
const TEMPERATURE = { first: 0.3, last: 0.003 };

/**
 * Looks by simulated annealing for a graph and a network on which `first` takes as much longer than `second` as can be
 * found: what policies do on well-known workloads says little about their worst case. The approach is that of PISA
 * (Coleman and Krishnamachari, 2024), here with the scheduler of production. Equal options find the same.
 *
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`, `ERR_POLICY` when a policy fails each time
 */
export async function worstCase(
  first: PolicyVariant,
  second: PolicyVariant,
  { steps = STEPS, limits = LIMITS, seed = 1, onWorse, ...options }: WorstCaseOptions = {},
): Promise<WorstCase> {
  const draw = new Draw(seed);
  const measure = async (instance: Instance, step: number): Promise<WorstCase> => {
    const firstS = await makespan(instance, first, options);
    const secondS = await makespan(instance, second, options);
    // Where the second comes to no end, the first is not worse.
    const ratio = secondS === Infinity ? 0 : firstS / secondS;
    return { instance, firstS, secondS, ratio, step };
  };
  let current = await measure(firstInstance(draw, limits), 0);
  let worst = current;
  for (let step = 1; step <= steps; step++) {
    const next = await measure(changed(current.instance, draw, step, limits), step);
    const { first: hot, last: cold } = TEMPERATURE;
    const temperature = hot * (cold / hot) ** (step / steps);
    const loss = Math.log(current.ratio / next.ratio);
    if (draw.uniform('accept', step) < Math.exp(-loss / temperature)) current = next;
    if (next.ratio > worst.ratio) {
      worst = next;
      onWorse?.(worst);
    }
  }
  return worst;
}

/** Seconds; Infinity when the policies do not bring the graph to its end. */
async function makespan(
  instance: Instance,
  { config, overrides }: PolicyVariant,
  options: SimulationOptions,
): Promise<number> {
  try {
    const { makespanS, failed, useless } = await simulate(instanceWorkload(instance, 'instance'), {
      ...options,
      ...(config === undefined ? {} : { config }),
      ...(overrides === undefined ? {} : { overrides }),
      network: { ...options.network, bandwidth: instance.bandwidth },
    });
    if (useless !== undefined) throw new YardmasterError('ERR_POLICY', useless);
    return failed > 0 ? Infinity : makespanS;
  } catch (error) {
    if (YardmasterError.is(error, 'ERR_TIMEOUT')) return Infinity;
    throw error;
  }
}
