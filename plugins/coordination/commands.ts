import {
  type Caller,
  type CommandHandler,
  type NewStimulus,
  YardmasterError,
} from '../../core/api/index.ts';
import { type Read, readParameters } from '../amm/parameters.ts';
import type { DataSets } from './data-sets.ts';
import { refused } from './errors.ts';
import type { Flags } from './flags.ts';
import type { Leases } from './leases.ts';
import type { Queues } from './queues.ts';
import type { CoordinationScope } from './scope.ts';
import type { Semaphores } from './semaphores.ts';
import type { Topics } from './topics.ts';
import type { Value } from './values.ts';
import type { Variables } from './variables.ts';

/** Longer names are surely a mistake: data in the place of its name. */
const NAME_LENGTH_MAX = 1024;

/** What the commands are about. */
export interface Parts {
  readonly scope: CoordinationScope;
  readonly variables: Variables;
  readonly queues: Queues;
  readonly leases: Leases;
  readonly locks: Semaphores;
  readonly semaphores: Semaphores;
  readonly flags: Flags;
  readonly dataSets: DataSets;
  readonly topics: Topics;
  enqueue(stimulus: NewStimulus): void;
}

type Offer = (command: string, handler: CommandHandler) => void;

const NAME = { name: 'text' } as const;
const WAIT = { name: 'text', timeoutMs: 'amount' } as const;
const VALUE = { name: 'text', value: 'bytes', keys: 'texts' } as const;

/** Offers all commands of coordination. */
export function addCommands(offer: Offer, parts: Parts): void {
  addValueCommands(offer, parts);
  addQueueCommands(offer, parts);
  addLeaseCommands(offer, parts);
  addFlagCommands(offer, parts);
  addTopicCommands(offer, parts);
}

function addValueCommands(offer: Offer, { scope, variables, dataSets }: Parts): void {
  offer('setVariable', (given) => {
    const { name, ...value } = read('setVariable', VALUE, given);
    variables.set(nameOf('setVariable', name), valueOf('setVariable', value));
  });
  offer('getVariable', (given, caller) => {
    const { name, timeoutMs } = read('getVariable', WAIT, given);
    return variables.get(nameOf('getVariable', name), requestOf(caller, timeoutMs));
  });
  offer('deleteVariable', (given) => {
    variables.delete(nameOf('deleteVariable', read('deleteVariable', NAME, given).name));
  });
  offer('publish', (given) => {
    const shape = { ...VALUE, override: 'flag' } as const;
    const { name, override = false, ...value } = read('publish', shape, given);
    dataSets.publish(nameOf('publish', name), valueOf('publish', value), override);
  });
  offer('getPublished', (given, caller) => {
    const { name } = read('getPublished', NAME, given);
    return dataSets.get(nameOf('getPublished', name), clientOf(caller));
  });
  offer('unpublish', (given) => {
    dataSets.unpublish(nameOf('unpublish', read('unpublish', NAME, given).name));
  });
  offer('listPublished', () => dataSets.names);
  offer('received', (given, caller) => {
    const { handover } = read('received', { handover: 'count' }, given);
    scope.values.received(clientOf(caller), wanted('received', 'handover', handover));
  });
}

function addQueueCommands(offer: Offer, { queues }: Parts): void {
  const open = (
    command: string,
    given: { readonly name?: string; readonly maxSize?: number },
    caller: Caller,
  ): ReturnType<Queues['open']> => {
    return queues.open(nameOf(command, given.name), clientOf(caller), given.maxSize);
  };
  offer('putQueue', (given, caller) => {
    const shape = { ...WAIT, ...VALUE, maxSize: 'copies' } as const;
    const parameters = read('putQueue', shape, given);
    const value = valueOf('putQueue', parameters);
    const queue = open('putQueue', parameters, caller);
    return queues.put(queue, value, requestOf(caller, parameters.timeoutMs));
  });
  offer('getQueue', (given, caller) => {
    const parameters = read('getQueue', { ...WAIT, maxSize: 'copies' }, given);
    const queue = open('getQueue', parameters, caller);
    return queues.get(queue, requestOf(caller, parameters.timeoutMs));
  });
  offer('getQueueItems', (given, caller) => {
    const shape = { name: 'text', maxSize: 'copies', count: 'count' } as const;
    const { count = Infinity, ...parameters } = read('getQueueItems', shape, given);
    return queues.getMany(open('getQueueItems', parameters, caller), clientOf(caller), count);
  });
  offer('queueSize', (given, caller) => {
    const shape = { name: 'text', maxSize: 'copies' } as const;
    return open('queueSize', read('queueSize', shape, given), caller).items.size;
  });
  offer('deleteQueue', (given) => {
    queues.delete(nameOf('deleteQueue', read('deleteQueue', NAME, given).name));
  });
}

function addLeaseCommands(offer: Offer, { leases, locks, semaphores }: Parts): void {
  offer('acquireLock', (given, caller) => {
    const { name, timeoutMs } = read('acquireLock', WAIT, given);
    return locks.acquire(nameOf('acquireLock', name), 1, requestOf(caller, timeoutMs));
  });
  offer('lockState', (given) => {
    return locks.state(nameOf('lockState', read('lockState', NAME, given).name));
  });
  offer('acquireLease', (given, caller) => {
    const shape = { ...WAIT, leases: 'count' } as const;
    const { name, timeoutMs, leases: count } = read('acquireLease', shape, given);
    if (count === undefined || count < 1) {
      throw refusal('acquireLease', 'wants a whole number, at least 1, as leases', 'leases');
    }
    return semaphores.acquire(nameOf('acquireLease', name), count, requestOf(caller, timeoutMs));
  });
  offer('semaphoreState', (given) => {
    return semaphores.state(nameOf('semaphoreState', read('semaphoreState', NAME, given).name));
  });
  offer('release', (given, caller) => {
    const { lease } = read('release', { lease: 'count' }, given);
    leases.release(clientOf(caller), wanted('release', 'lease', lease));
  });
  offer('renew', (given, caller) => {
    const { leases: ids = [] } = read('renew', { leases: 'counts' }, given);
    return leases.renew(clientOf(caller), ids);
  });
}

function addFlagCommands(offer: Offer, { flags }: Parts): void {
  offer('setEvent', (given) => {
    flags.set(nameOf('setEvent', read('setEvent', NAME, given).name));
  });
  offer('clearEvent', (given) => {
    flags.clear(nameOf('clearEvent', read('clearEvent', NAME, given).name));
  });
  offer('isEventSet', (given) => {
    return flags.isSet(nameOf('isEventSet', read('isEventSet', NAME, given).name));
  });
  offer('waitForEvent', (given, caller) => {
    const { name, timeoutMs } = read('waitForEvent', WAIT, given);
    return flags.wait(nameOf('waitForEvent', name), requestOf(caller, timeoutMs));
  });
}

function addTopicCommands(offer: Offer, parts: Parts): void {
  const { topics } = parts;
  offer('logEvent', (given) => {
    const { topics: names = [], message } = read(
      'logEvent',
      { topics: 'texts', message: 'data' },
      given,
    );
    for (const name of names) nameOf('logEvent', name);
    parts.enqueue({ op: 'log-event', topics: names, message });
  });
  offer('subscribe', (given, caller) => {
    topics.subscribe(clientOf(caller), nameOf('subscribe', read('subscribe', NAME, given).name));
  });
  offer('unsubscribe', (given, caller) => {
    const { name } = read('unsubscribe', NAME, given);
    topics.unsubscribe(clientOf(caller), nameOf('unsubscribe', name));
  });
  offer('nextEvents', (_given, caller) => topics.fetch(clientOf(caller)));
}

function read<const Shape extends Parameters<typeof readParameters>[1]>(
  command: string,
  shape: Shape,
  given: unknown,
): Read<Shape> {
  return readParameters(`coordination.${command}`, shape, given);
}

function valueOf(
  command: string,
  { value, keys = [] }: { readonly value?: Uint8Array; readonly keys?: readonly string[] },
): Value {
  return { bytes: wanted(command, 'value', value), keys };
}

function requestOf(
  caller: Caller,
  timeoutMs = Infinity,
): { readonly client: string; readonly timeoutMs: number } {
  return { client: clientOf(caller), timeoutMs };
}

/** What is held and who waits ends with its client, so there must be one. */
function clientOf({ client }: Caller): string {
  if (client !== undefined) return client;
  throw refused(
    'not-a-client',
    'only a client can hold, wait and subscribe: connect one with Client.connect',
    {},
  );
}

function nameOf(command: string, name: string | undefined): string {
  const given = wanted(command, 'name', name);
  if (given.length > 0 && given.length <= NAME_LENGTH_MAX) return given;
  throw refusal(
    command,
    `wants a name of 1 to ${NAME_LENGTH_MAX} characters, got ${given.length}`,
    'name',
  );
}

function wanted<T>(command: string, field: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw refusal(command, `needs ${field}`, field);
}

function refusal(command: string, what: string, field: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "coordination.${command}" ${what}`, {
    command: `coordination.${command}`,
    field,
  });
}
