import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type GraphTask, YardmasterError } from '../../core/api/index.ts';
import type { TasksPart } from '../../core/kernel/snapshot.ts';
import type { LogFrame } from '../../core/log/format.ts';
import type { TaskFinished } from '../../core/messages/stimulus.ts';
import { hint } from '../../core/shared/words.ts';
import { TASK_STATE_NAMES } from '../../core/state/state-names.ts';
import { countOf } from '../../core/util/values.ts';
import { wholeRecording } from '../app/read-log.ts';
import * as graphs from '../workloads/index.ts';
import {
  type CostedTask,
  graphWorkload,
  type SimulatedWorkload,
  type Workload,
} from '../workloads/index.ts';

/**
 * A workload by what names it on the command line: one of the literature (`numpy-50K-50`), a shape with its size
 * (`tree:8`, `chains:10,20`) and, after `@`, what each task costs (`tree:8@100ms,10MB`), a recording (`run.ylog`), an
 * instance of WfCommons or a graph of Estee (`montage.json`), a graph of a data set of Estee (`irw.json#crossv`), a graph
 * in DOT (`graph.dot`), or a module whose default export is a workload or makes one (`graph.js`).
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE`, `ERR_LOG`
 */
export async function loadWorkload(text: string): Promise<SimulatedWorkload> {
  const [first, ...others] = await loadWorkloads(text);
  if (first !== undefined && others.length === 0) return first;
  const count = countOf(others.length + (first === undefined ? 0 : 1), 'graph');
  const example = first === undefined ? '' : `, such as ${first.name}`;
  throw graphs.invalidWorkload(text, `has ${count}; name a single one${example}`);
}

/**
 * As {@link loadWorkload}, and all graphs of a data set, or of the files of a folder in the order of their names. Modules
 * in a folder are left out: they may be policies.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE`, `ERR_LOG`
 */
export async function loadWorkloads(text: string): Promise<SimulatedWorkload[]> {
  const [file = '', graph] = text.split(/(?<=\.json)#/);
  switch (extname(file)) {
    case '.ylog':
      return [await recordedWorkload(file)];
    case '.json': {
      const found = graphs.jsonWorkloads(await read(file), file);
      if (graph === undefined) return found;
      const chosen = found.find(({ name }) => name === `${basename(file, '.json')}#${graph}`);
      if (chosen !== undefined) return [chosen];
      throw graphs.invalidWorkload(
        text,
        `is not there: ${file} has ${found.map(({ name }) => name).join(', ')}`,
      );
    }
    case '.dot':
    case '.gv':
      return [await graphs.dotWorkload(await read(file), file)];
    case '.js':
    case '.mjs':
    case '.ts':
      return [await fromModule(file)];
  }
  const isFolder = (await stat(file).catch(() => undefined))?.isDirectory() === true;
  if (isFolder) {
    const names = (await readdir(file)).filter((name) => GRAPH_FILES.includes(extname(name)));
    const paths = names.sort().map((name) => join(file, name));
    const loaded: SimulatedWorkload[] = [];
    for (const path of paths) loaded.push(...(await loadWorkloads(path)));
    return loaded;
  }
  const [name = '', cost] = text.split(/@(.*)/s);
  const workload = named(name);
  return [cost === undefined ? workload : graphs.withCost(workload, text, cost)];
}

/** The files of a folder that are read. */
const GRAPH_FILES = ['.json', '.dot', '.gv', '.ylog'];

function named(name: string): SimulatedWorkload {
  if (graphs.WORKLOADS.includes(name)) return graphs.workload(name);
  const made = graphs.shaped(name);
  if (made !== undefined) return made;
  const known = [...graphs.WORKLOADS, ...graphs.SHAPES];
  throw graphs.invalidWorkload(
    name,
    `is no workload${hint(name, known) || '.'} Choose one of ${graphs.WORKLOADS.join(', ')}; a shape with its size, such as tree:8, of ${graphs.SHAPES.join(', ')}; or a file (.ylog, .json, .dot, .js)`,
  );
}

async function fromModule(file: string): Promise<SimulatedWorkload> {
  const module = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  const made: unknown =
    typeof module.default === 'function'
      ? await (module.default as () => unknown)()
      : module.default;
  const {
    tasks,
    keys,
    durationsS,
    nbytes,
    name = file,
  } = (made ?? {}) as Partial<SimulatedWorkload>;
  if (
    !Array.isArray(tasks) ||
    !Array.isArray(keys) ||
    durationsS === undefined ||
    nbytes === undefined
  ) {
    throw graphs.invalidWorkload(
      file,
      "has no workload as its default export; make one with graphWorkload of 'yardmaster/simulator'",
    );
  }
  return { name, tasks, keys, durationsS, nbytes };
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const why = (cause as Error).message;
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `${file} cannot be read: ${why}`,
      { file },
      { cause },
    );
  }
}

type RecordedTask = Pick<GraphTask, 'key' | 'dependencies' | 'prefix'>;

/** The graphs of clients and the cost of tasks in a recording. */
export class RecordedGraphs {
  private readonly tasks = new Map<string, RecordedTask>();
  private readonly wanted = new Set<string>();
  private readonly durationsS = new Map<string, number>();
  private readonly sizes = new Map<string, number>();

  private readonly known: TasksPart[] = [];
  private hasBegun = false;

  add(frame: LogFrame): void {
    if (frame.kind === 'state' && !this.hasBegun && frame.payload.part === 'tasks') {
      this.known.push(frame.payload);
    }
    if (frame.kind !== 'stimulus') return;
    if (!this.hasBegun) this.addKnown();
    this.hasBegun = true;
    const { payload } = frame;
    if (payload.op === 'update-graph') {
      for (const task of payload.tasks) {
        if (!this.tasks.has(task.key)) this.tasks.set(task.key, task);
      }
      for (const key of payload.keys) this.wanted.add(key);
    } else if (payload.op === 'update-data') {
      for (const { key, nbytes = 0 } of payload.items) {
        if (!this.tasks.has(key)) this.tasks.set(key, { key, dependencies: [] });
        this.durationsS.set(key, 0);
        this.sizes.set(key, nbytes);
      }
    } else if (payload.op === 'task-finished') this.addFinished(payload);
  }

  /** The tasks that were open when the recording began, and the results that they need, which cost nothing. */
  private addKnown(): void {
    const keys = new Map<number, string>();
    const sizes = new Map<string, number>();
    for (const part of this.known) {
      part.ids.forEach((id, at) => keys.set(id, part.keys[at] ?? ''));
      part.keys.forEach((key, at) => sizes.set(key, Math.max(0, part.nbytes[at] ?? 0)));
    }
    const keysOf = (ids: readonly number[] = []): string[] =>
      ids.flatMap((id) => keys.get(id) ?? []);
    const needed = new Set<string>();
    for (const { keys: ownKeys, states, dependencies, whoWants } of this.known) {
      for (const [at, key] of ownKeys.entries()) {
        if (!isOpen(states[at] ?? 0)) continue;
        const needs = keysOf(dependencies[at]);
        this.tasks.set(key, { key, dependencies: needs });
        for (const need of needs) needed.add(need);
        if ((whoWants[at] ?? []).length > 0) this.wanted.add(key);
      }
    }
    for (const key of needed) {
      if (this.tasks.has(key)) continue;
      this.tasks.set(key, { key, dependencies: [] });
      this.durationsS.set(key, 0);
      this.sizes.set(key, sizes.get(key) ?? 0);
    }
  }

  private addFinished({ key, nbytes, timings }: TaskFinished): void {
    let seconds = 0;
    for (const { action, startS, stopS } of timings) {
      if (action === 'compute') seconds += Math.max(0, stopS - startS);
    }
    this.durationsS.set(key, seconds);
    if (nbytes !== undefined) this.sizes.set(key, nbytes);
  }

  /**
   * All graphs as one.
   * @param file - the recording
   * @throws YardmasterError `ERR_GRAPH_INVALID` when no graph was submitted
   */
  workload(file: string): Workload {
    const { tasks, wanted } = this;
    if (tasks.size === 0) {
      const message = `${file}: no graph was submitted while this was recorded`;
      throw new YardmasterError('ERR_GRAPH_INVALID', message, { file });
    }
    const keys = [...wanted].filter((key) => tasks.has(key));
    return graphWorkload(basename(file), this.costed(), { wanted: keys, source: file });
  }

  /** Tasks that did not finish in the recording take the mean of all others. */
  private costed(): CostedTask[] {
    const meanS = mean(this.durationsS);
    const meanBytes = mean(this.sizes);
    return [...this.tasks.values()].map(({ key, dependencies, prefix }) => ({
      key,
      // Results that the cluster had before the recording began are part of it only where open tasks needed them.
      needs: dependencies.filter((need) => this.tasks.has(need)),
      durationS: this.durationsS.get(key) ?? meanS,
      nbytes: this.sizes.get(key) ?? meanBytes,
      prefix,
    }));
  }
}

/**
 * The graphs that clients submitted in a recording as one workload, with the durations and sizes that workers reported.
 * @param file - path, made by `yardmaster scheduler --record`
 * @throws YardmasterError `ERR_LOG` when it cannot be read; `ERR_GRAPH_INVALID` when no graph was submitted
 */
export async function recordedWorkload(file: string): Promise<Workload> {
  const graphs = new RecordedGraphs();
  for await (const frame of wholeRecording(file)) graphs.add(frame);
  return graphs.workload(file);
}

/** True when a task was still to be computed, by its state as a checkpoint has it. */
export function isOpen(saved: number): boolean {
  const state = TASK_STATE_NAMES[saved % STATE_FLAGS];
  return state !== undefined && OPEN_STATES.includes(state);
}

/** Positions of states are below this; above are flags. */
const STATE_FLAGS = 16;
const OPEN_STATES: readonly string[] = ['waiting', 'no-worker', 'queued', 'processing'];

function mean(values: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const value of values.values()) sum += value;
  return values.size === 0 ? 0 : sum / values.size;
}
