/** What Dask's annotations of a task mean to the scheduler. */
import { type GraphTask, YardmasterError } from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import { isRecord, itemsOf, numberOf, type GraphContext } from './unpacked.ts';

/** Fields of a task that come from its annotations. */
export type Annotated = Pick<
  GraphTask,
  | 'userPriority'
  | 'retries'
  | 'workers'
  | 'hosts'
  | 'allowOtherWorkers'
  | 'resources'
  | 'annotations'
>;

/**
 * Reads the annotations that have a meaning to the scheduler; all of them stay with the task, because
 * workers and plugins see them. What cannot be meant (`retries="x"`) is only kept.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID` when resources are no numbers by name
 */
export function readAnnotations(
  annotations: Readonly<Record<string, unknown>>,
  context: GraphContext,
): Annotated {
  const read: { -readonly [Field in keyof Annotated]: Annotated[Field] } = { annotations };
  const priority = numberOf(annotations['priority']);
  if (priority !== undefined) read.userPriority = priority;
  const retries = numberOf(annotations['retries']);
  if (retries !== undefined) read.retries = retries;
  const places = annotations['workers'] ?? annotations['restrictions'];
  if (places !== undefined && places !== null) Object.assign(read, readPlaces(places, context));
  const isLoose = annotations['allow_other_workers'] ?? annotations['loose_restrictions'];
  if (typeof isLoose === 'boolean') read.allowOtherWorkers = isLoose;
  const amounts = annotations['resources'];
  if (amounts !== undefined && amounts !== null) read.resources = readResources(amounts);
  return read;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID`: a task that ignored them would run where it must not */
function readResources(amounts: unknown): Readonly<Record<string, number>> {
  const resources: Record<string, number> = {};
  for (const [name, amount] of Object.entries(isRecord(amounts) ? amounts : { '': amounts })) {
    const value = numberOf(amount);
    if (value !== undefined && name !== '') resources[name] = value;
    else {
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        `resources of a task are numbers by name, such as {"GPU": 1}, not ${show(amounts)}`,
      );
    }
  }
  return resources;
}

/** An entry is an address, the name of a worker (also a number), or else a host. */
function readPlaces(places: unknown, context: GraphContext): Annotated {
  const workers: string[] = [];
  const hosts: string[] = [];
  for (const place of itemsOf(places)) {
    if (Array.isArray(place)) {
      workers.push(`tcp://${place.map(String).join(':')}`);
      continue;
    }
    const name = String(place);
    if (context.isWorkerName(name)) workers.push(name);
    else if (name.includes('://')) workers.push(name);
    else if (/:\d+$/.test(name)) workers.push(`tcp://${name}`);
    else hosts.push(name);
  }
  return {
    ...(workers.length > 0 ? { workers } : {}),
    ...(hosts.length > 0 ? { hosts } : {}),
  };
}
