/**
 * Instances of scientific workflows in the format of WfCommons (WfFormat 1.5, github.com/wfcommons/WfFormat): the
 * tasks of real runs with their durations and the files between them.
 */
import { GraphFile, type Plain } from './graph-file.ts';
import { type CostedTask, graphWorkload, type Workload } from './workload.ts';

/** Versions of the format that are read. In 1.6 all that is new is optional. */
const VERSIONS = ['1.5', '1.6'];

/**
 * Reads an instance. A task takes what it took in the recorded run, on one thread; its result is as large as the
 * files that it wrote. Files that no task writes are not part of the graph, and cost nothing.
 *
 * @param text - JSON
 * @param source - path of the file, for messages
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with file, task and field
 */
export function wfcommonsWorkload(text: string, source: string): Workload {
  const file = new GraphFile(source);
  return instanceWorkload(file.object(file.json(text), 'the file'), file);
}

/** Makes a workload of an instance that is parsed already. */
export function instanceWorkload(instance: Plain, file: GraphFile): Workload {
  const { schemaVersion, name, workflow } = instance;
  if (!VERSIONS.includes(String(schemaVersion))) {
    throw file.error(
      `has the schemaVersion ${schemaVersion === undefined ? 'undefined' : JSON.stringify(schemaVersion)}; versions ${VERSIONS.join(' and ')} are read. tools/wfcommons-migrate-instance.py of github.com/wfcommons/WfFormat brings older ones up to date`,
      { field: 'schemaVersion' },
    );
  }
  const { source } = file;
  const title = typeof name === 'string' && name !== '' ? name : source;
  const tasks = tasksOf(file.object(workflow, 'workflow'), file);
  return graphWorkload(title, tasks, { source });
}

function tasksOf(workflow: Plain, file: GraphFile): CostedTask[] {
  const specification = file.object(workflow['specification'], 'workflow.specification');
  const place = 'workflow.specification.tasks';
  const tasks = file
    .list(specification['tasks'], place)
    .map((task, index) => file.object(task, `${place}[${index}]`));
  const ids = tasks.map((task, index) => file.text(task['id'], `${place}[${index}].id`));
  const known = new Set<string>();
  for (const id of ids) {
    if (known.has(id)) throw file.error(`has two tasks with the id "${id}"`, { task: id });
    known.add(id);
  }
  const sizes = fileSizes(specification['files'], file);
  const durations = durationsOf(workflow['execution'], known, file);
  const needs = needsOf(tasks, ids, file);
  return tasks.map((task, index) => {
    const id = ids[index] as string;
    const at = `${place}[${index}]`;
    const durationS = durations.get(id);
    if (durationS === undefined) {
      throw file.error(
        `has no workflow.execution.tasks entry for the task "${id}", so its duration is unknown; use an instance of a run`,
        { task: id },
      );
    }
    const bytesOf = (field: string): number =>
      names(task[field] ?? [], `${at}.${field}`, file).reduce((sum, name) => {
        const nbytes = sizes.get(name);
        if (nbytes !== undefined) return sum + nbytes;
        throw file.error(
          `names the file "${name}" in ${field} of the task "${id}", and workflow.specification.files has no such file`,
          { task: id, file: name },
        );
      }, 0);
    bytesOf('inputFiles');
    const nbytes = bytesOf('outputFiles');
    const prefix = file.text(task['name'], `${at}.name`);
    return { key: id, needs: [...(needs.get(id) ?? [])], durationS, nbytes, prefix };
  });
}

/** Parents say the same as children; where an instance has only one side, that counts. */
function needsOf(
  tasks: readonly Plain[],
  ids: readonly string[],
  file: GraphFile,
): Map<string, Set<string>> {
  const needs = new Map(ids.map((id) => [id, new Set<string>()]));
  tasks.forEach((task, index) => {
    const id = ids[index] as string;
    for (const field of ['parents', 'children']) {
      for (const other of names(task[field] ?? [], `${field} of the task "${id}"`, file)) {
        const [user, need] = field === 'parents' ? [id, other] : [other, id];
        if (!needs.has(other)) {
          throw file.error(
            `names "${other}" in ${field} of the task "${id}", and has no such task`,
            { task: id, field },
          );
        }
        needs.get(user)?.add(need);
      }
    }
  });
  return needs;
}

function durationsOf(
  given: unknown,
  known: ReadonlySet<string>,
  file: GraphFile,
): Map<string, number> {
  if (given === undefined) {
    throw file.error(
      'has no workflow.execution, so the durations of its tasks are unknown; use an instance of a run',
      { field: 'workflow.execution' },
    );
  }
  const { tasks } = file.object(given, 'workflow.execution');
  const durations = amounts(tasks, 'workflow.execution.tasks', 'runtimeInSeconds', 'task', file);
  for (const id of durations.keys()) {
    if (known.has(id)) continue;
    throw file.error(`has an execution of "${id}", and no such task`, { task: id });
  }
  return durations;
}

function fileSizes(given: unknown, file: GraphFile): Map<string, number> {
  return amounts(given ?? [], 'workflow.specification.files', 'sizeInBytes', 'file', file);
}

/** A field of each entry of a list, by the ids of the entries. */
function amounts(
  given: unknown,
  place: string,
  field: string,
  kind: string,
  file: GraphFile,
): Map<string, number> {
  const amountOf = (entry: unknown, index: number): [string, number] => {
    const written = file.object(entry, `${place}[${index}]`);
    const id = file.text(written['id'], `${place}[${index}].id`);
    return [id, file.amount(written[field], field, `the ${kind} "${id}"`)];
  };
  return new Map(file.list(given, place).map(amountOf));
}

function names(given: unknown, place: string, file: GraphFile): string[] {
  return file.list(given, place).map((name, index) => file.text(name, `${place}[${index}]`));
}
