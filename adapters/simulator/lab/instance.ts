import { type CostedTask, graphWorkload, type Workload } from '../../workloads/index.ts';
import type { Draw } from '../draw.ts';
import { DEFAULT_NETWORK } from '../options.ts';

/** A graph and the network that it runs on: what a search for bad cases changes, one thing at a time. */
export interface Instance {
  readonly tasks: readonly CostedTask[];
  /** Bytes per second of the link of each worker. */
  readonly bandwidth: number;
}

/** How many tasks an instance may have. */
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

/** The instance that a search begins with. */
export function firstInstance(draw: Draw, { fewestTasks, mostTasks }: InstanceLimits): Instance {
  const count = Math.ceil((fewestTasks + mostTasks) / 2);
  const tasks: CostedTask[] = [];
  for (let number = 0; number < count; number++) {
    const needs = tasks
      .filter((_, earlier) => draw.uniform(`need ${earlier}`, number) < DENSITY)
      .map(({ key }) => key);
    tasks.push({ ...newTask(draw, number, `t${number}`), needs });
  }
  return { tasks, bandwidth: DEFAULT_NETWORK.bandwidth };
}

/** The same instance with one change. `step` tells the changes of a search apart. */
export function changed(
  instance: Instance,
  draw: Draw,
  step: number,
  limits: InstanceLimits,
): Instance {
  const change = CHANGES[draw.below(CHANGES.length, 'change', step)] as Change;
  return change(instance, draw, step, limits);
}

/** The graph of an instance. */
export function instanceWorkload({ tasks }: Instance, name: string): Workload {
  return graphWorkload(name, tasks);
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
