import { YardmasterError } from '../../../core/api/index.ts';
import { type CostedTask, graphWorkload } from '../../workloads/index.ts';
import { DEFAULT_NETWORK, type SimulationOptions } from '../options.ts';
import { Draw } from '../random.ts';
import { simulate } from '../simulation.ts';
import type { PolicyVariant } from './variants.ts';

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
  const { bandwidth } = { ...DEFAULT_NETWORK, ...options.network };
  let current = await measure({ tasks: firstTasks(draw, limits), bandwidth }, 0);
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
    const { makespanS, failed, useless } = await simulate(
      graphWorkload('instance', instance.tasks),
      {
        ...options,
        ...(config === undefined ? {} : { config }),
        ...(overrides === undefined ? {} : { overrides }),
        network: { ...options.network, bandwidth: instance.bandwidth },
      },
    );
    if (useless !== undefined) throw new YardmasterError('ERR_POLICY', useless);
    return failed > 0 ? Infinity : makespanS;
  } catch (error) {
    if (YardmasterError.is(error, 'ERR_TIMEOUT')) return Infinity;
    throw error;
  }
}

/** A graph and the network that it runs on: what a search for bad cases changes, one thing at a time. */
export interface Instance {
  readonly tasks: readonly CostedTask[];
  /** Bytes per second of the link of each worker. */
  readonly bandwidth: number;
}

/** The bounds on the number of tasks of an instance. */
export interface InstanceLimits {
  readonly fewestTasks: number;
  readonly mostTasks: number;
}

/** Seconds. */
const DURATION = { least: 0.1, most: 10 };
const RESULT_BYTES = { least: 1e3, most: 1e9 };
/** Bytes per second: 10 Mbit/s to 10 Gbit/s. */
const BANDWIDTH = { least: 1.25e6, most: 1.25e9 };
/** Of all pairs of a first instance, how many depend on each other. */
const DENSITY = 0.2;

type Change = (instance: Instance, draw: Draw, step: number, limits: InstanceLimits) => Instance;

/** Each keeps the order of tasks: a task needs earlier ones only, so that there is never a cycle. */
const CHANGES: readonly Change[] = [
  ({ tasks, ...rest }, draw, step) => {
    const durationS = between(DURATION, draw.uniform('duration', step));
    return { ...rest, tasks: replaced(tasks, draw, step, (task) => ({ ...task, durationS })) };
  },
  ({ tasks, ...rest }, draw, step) => {
    const nbytes = Math.round(between(RESULT_BYTES, draw.uniform('bytes', step)));
    return { ...rest, tasks: replaced(tasks, draw, step, (task) => ({ ...task, nbytes })) };
  },
  // Twice as likely as the others: there are many pairs.
  toggledNeed,
  toggledNeed,
  (instance, draw, step) => ({
    ...instance,
    bandwidth: Math.round(between(BANDWIDTH, draw.uniform('bandwidth', step))),
  }),
  addTask,
  removeTask,
];

/** The tasks that a search begins with. */
function firstTasks(draw: Draw, { fewestTasks, mostTasks }: InstanceLimits): CostedTask[] {
  const count = Math.ceil((fewestTasks + mostTasks) / 2);
  const tasks: CostedTask[] = [];
  for (let number = 0; number < count; number++) {
    const needs = tasks
      .filter((_, earlier) => draw.uniform(`need ${earlier}`, number) < DENSITY)
      .map(({ key }) => key);
    tasks.push({ ...newTask(draw, number, `t${number}`), needs });
  }
  return tasks;
}

/** The same instance with one change. `step` tells the changes of a search apart. */
function changed(instance: Instance, draw: Draw, step: number, limits: InstanceLimits): Instance {
  const change = CHANGES[draw.below(CHANGES.length, 'change', step)] as Change;
  return change(instance, draw, step, limits);
}

function addTask(
  instance: Instance,
  draw: Draw,
  step: number,
  { mostTasks }: InstanceLimits,
): Instance {
  const { tasks } = instance;
  if (tasks.length >= mostTasks) return instance;
  const need = tasks[draw.below(tasks.length, 'need of new', step)];
  const needs = need === undefined || draw.uniform('has need', step) < 0.3 ? [] : [need.key];
  return { ...instance, tasks: [...tasks, { ...newTask(draw, step, `s${step}`), needs }] };
}

function removeTask(
  instance: Instance,
  draw: Draw,
  step: number,
  { fewestTasks }: InstanceLimits,
): Instance {
  const { tasks } = instance;
  if (tasks.length <= fewestTasks) return instance;
  const gone = tasks[draw.below(tasks.length, 'gone', step)]?.key;
  const left = tasks.filter(({ key }) => key !== gone);
  return {
    ...instance,
    tasks: left.map((task) => ({
      ...task,
      needs: task.needs?.filter((key) => key !== gone) ?? [],
    })),
  };
}

/** Adds the dependency between two tasks, or takes it away. */
function toggledNeed(instance: Instance, draw: Draw, step: number): Instance {
  const { tasks } = instance;
  if (tasks.length < 2) return instance;
  const later = 1 + draw.below(tasks.length - 1, 'later', step);
  const need = tasks[draw.below(later, 'earlier', step)]?.key ?? '';
  return {
    ...instance,
    tasks: tasks.map((task, index) => {
      if (index !== later) return task;
      const { needs = [] } = task;
      const without = needs.filter((key) => key !== need);
      return { ...task, needs: without.length < needs.length ? without : [...needs, need] };
    }),
  };
}

function newTask(draw: Draw, number: number, key: string): CostedTask {
  return {
    key,
    durationS: between(DURATION, draw.uniform('duration of new', number)),
    nbytes: Math.round(between(RESULT_BYTES, draw.uniform('bytes of new', number))),
  };
}

function replaced(
  tasks: readonly CostedTask[],
  draw: Draw,
  step: number,
  change: (task: CostedTask) => CostedTask,
): CostedTask[] {
  const chosen = draw.below(tasks.length, 'task', step);
  return tasks.map((task, index) => (index === chosen ? change(task) : task));
}

/** Evenly on a logarithmic scale, to three digits, so that people can read it. */
function between(
  { least, most }: { readonly least: number; readonly most: number },
  share: number,
): number {
  return Number((least * (most / least) ** share).toPrecision(3));
}
