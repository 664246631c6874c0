/**
 * Instances of scientific workflows in the format of WfCommons (WfFormat 1.5, github.com/wfcommons/WfFormat): the
 * tasks of real runs with their durations and the files between them.
 */
import { YardmasterError } from '../../core/api/index.ts';
import { type CostedTask, graphWorkload, type Workload } from './workload.ts';

/** Versions of the format that are read. In 1.6 all that is new is optional. */
const VERSIONS = ['1.5', '1.6'];

type Plain = Readonly<Record<string, unknown>>;

/**
 * Reads an instance. A task takes what it took in the recorded run, on one thread; its result is as large as the
 * files that it wrote. Files that no task writes are not part of the graph, and cost nothing.
 *
 * @param text - JSON
 * @param source - path of the file, for messages
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with file, task and field
 */
export function wfcommonsWorkload(text: string, source: string): Workload {
  const reader = new InstanceReader(source);
  const root = reader.parse(text);
  const { name } = root;
  const title = typeof name === 'string' && name !== '' ? name : source;
  return graphWorkload(title, reader.tasks(root), { source });
}

class InstanceReader {
  constructor(private readonly source: string) {}

  parse(text: string): Plain {
    let root: unknown;
    try {
      root = JSON.parse(text);
    } catch (cause) {
      throw this.error('is no JSON', { cause });
    }
    const instance = this.object(root, 'the file');
    const { schemaVersion } = instance;
    if (!VERSIONS.includes(String(schemaVersion))) {
      throw this.error(
        `has the schemaVersion ${schemaVersion === undefined ? 'undefined' : JSON.stringify(schemaVersion)}; versions ${VERSIONS.join(' and ')} are read. tools/wfcommons-migrate-instance.py of github.com/wfcommons/WfFormat brings older ones up to date`,
        { field: 'schemaVersion' },
      );
    }
    return instance;
  }

  tasks(instance: Plain): CostedTask[] {
    const workflow = this.object(instance['workflow'], 'workflow');
    const specification = this.object(workflow['specification'], 'workflow.specification');
    const place = 'workflow.specification.tasks';
    const tasks = this.list(specification['tasks'], place).map((task, index) =>
      this.object(task, `${place}[${index}]`),
    );
    const ids = tasks.map((task, index) => this.text(task['id'], `${place}[${index}].id`));
    const known = new Set<string>();
    for (const id of ids) {
      if (known.has(id)) throw this.error(`has two tasks with the id "${id}"`, { task: id });
      known.add(id);
    }
    const sizes = this.fileSizes(specification['files']);
    const durations = this.durations(workflow['execution'], known);
    const needs = this.needs(tasks, ids, known);
    return tasks.map((task, index) => {
      const id = ids[index] as string;
      const at = `${place}[${index}]`;
      const durationS = durations.get(id);
      if (durationS === undefined) {
        throw this.error(
          `has no workflow.execution.tasks entry for the task "${id}", so its duration is unknown; use an instance of a run`,
          { task: id },
        );
      }
      for (const file of this.names(task['inputFiles'] ?? [], `${at}.inputFiles`)) {
        this.sizeOf(file, sizes, id, 'inputFiles');
      }
      const nbytes = this.names(task['outputFiles'] ?? [], `${at}.outputFiles`).reduce(
        (sum, file) => sum + this.sizeOf(file, sizes, id, 'outputFiles'),
        0,
      );
      const prefix = this.text(task['name'], `${at}.name`);
      return { key: id, needs: [...(needs.get(id) ?? [])], durationS, nbytes, prefix };
    });
  }

  /** Parents say the same as children; where an instance has only one side, that counts. */
  private needs(
    tasks: readonly Plain[],
    ids: readonly string[],
    known: ReadonlySet<string>,
  ): Map<string, Set<string>> {
    const needs = new Map(ids.map((id) => [id, new Set<string>()]));
    tasks.forEach((task, index) => {
      const id = ids[index] as string;
      for (const field of ['parents', 'children']) {
        for (const other of this.names(task[field] ?? [], `${field} of the task "${id}"`)) {
          if (!known.has(other)) {
            throw this.error(
              `names "${other}" in ${field} of the task "${id}", and has no such task`,
              {
                task: id,
                field,
              },
            );
          }
          if (field === 'parents') needs.get(id)?.add(other);
          else needs.get(other)?.add(id);
        }
      }
    });
    return needs;
  }

  private durations(given: unknown, known: ReadonlySet<string>): Map<string, number> {
    if (given === undefined) {
      throw this.error(
        'has no workflow.execution, so the durations of its tasks are unknown; use an instance of a run',
        { field: 'workflow.execution' },
      );
    }
    const place = 'workflow.execution.tasks';
    const durations = new Map<string, number>();
    this.list(this.object(given, 'workflow.execution')['tasks'], place).forEach((entry, index) => {
      const task = this.object(entry, `${place}[${index}]`);
      const id = this.text(task['id'], `${place}[${index}].id`);
      if (!known.has(id))
        throw this.error(`has an execution of "${id}", and no such task`, { task: id });
      const seconds = task['runtimeInSeconds'];
      if (typeof seconds !== 'number' || !(seconds >= 0) || seconds === Infinity) {
        throw this.error(
          `has the runtimeInSeconds ${JSON.stringify(seconds)} for the task "${id}"; it must be a number, 0 or more`,
          { task: id, field: 'runtimeInSeconds' },
        );
      }
      durations.set(id, seconds);
    });
    return durations;
  }

  private fileSizes(given: unknown): Map<string, number> {
    const place = 'workflow.specification.files';
    const sizes = new Map<string, number>();
    if (given === undefined) return sizes;
    this.list(given, place).forEach((entry, index) => {
      const file = this.object(entry, `${place}[${index}]`);
      const id = this.text(file['id'], `${place}[${index}].id`);
      const nbytes = file['sizeInBytes'];
      if (typeof nbytes !== 'number' || !(nbytes >= 0) || nbytes === Infinity) {
        throw this.error(
          `has the sizeInBytes ${JSON.stringify(nbytes)} for the file "${id}"; it must be a number, 0 or more`,
          { file: id, field: 'sizeInBytes' },
        );
      }
      sizes.set(id, nbytes);
    });
    return sizes;
  }

  private sizeOf(
    file: string,
    sizes: ReadonlyMap<string, number>,
    task: string,
    field: string,
  ): number {
    const nbytes = sizes.get(file);
    if (nbytes !== undefined) return nbytes;
    throw this.error(
      `names the file "${file}" in ${field} of the task "${task}", and workflow.specification.files has no such file`,
      { task, file },
    );
  }

  private names(given: unknown, place: string): string[] {
    return this.list(given, place).map((name, index) => this.text(name, `${place}[${index}]`));
  }

  private object(given: unknown, place: string): Plain {
    if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Plain;
    throw this.error(`has no object at ${place}`, { field: place });
  }

  private list(given: unknown, place: string): readonly unknown[] {
    if (Array.isArray(given)) return given;
    throw this.error(`has no list at ${place}`, { field: place });
  }

  private text(given: unknown, place: string): string {
    if (typeof given === 'string' && given !== '') return given;
    throw this.error(`has no text at ${place}`, { field: place });
  }

  private error(
    what: string,
    { cause, ...data }: { readonly cause?: unknown; readonly [field: string]: unknown } = {},
  ): YardmasterError {
    const { source } = this;
    const options = cause === undefined ? {} : { cause };
    const message = `${source} ${what}`;
    return new YardmasterError('ERR_GRAPH_INVALID', message, { source, ...data }, options);
  }
}
