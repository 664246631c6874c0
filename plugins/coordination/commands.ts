import type {
  Caller,
  CommandHandler,
  NewStimulus,
  ParametersOf,
  PluginContext,
} from '../../core/api/index.ts';
import {
  AMOUNT,
  BYTES,
  COPIES,
  COUNT,
  DATA,
  FLAG,
  NO_PARAMETERS,
  parameters,
  TEXTS,
} from '../../core/api/definition.ts';
import type { DataSets, Queues, Variables } from './variables.ts';
import { refused } from './wait-queue.ts';
import type { Flags, Leases, Semaphores } from './leases.ts';
import type { CoordinationScope } from './scope.ts';
import type { PublishedTopics, Topics } from './topics.ts';
import type { Value } from './values.ts';

/** The parts of coordination that the commands act on. */
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
  readonly published: PublishedTopics;
  readonly enqueue: (stimulus: NewStimulus) => void;
}

/** Longer names are surely a mistake: data in the place of its name. */
const ITS_NAME = { type: 'string', minLength: 1, maxLength: 1024 } as const;
const NAMED = parameters({ name: ITS_NAME });
const WAIT = { timeoutMs: AMOUNT } as const;
const VALUE = { name: ITS_NAME, value: BYTES } as const;
const KEYS = { keys: TEXTS } as const;
const SIZE = { maxSize: COPIES } as const;

export const COORDINATION_PARAMETERS = {
  setVariable: parameters(VALUE, KEYS),
  getVariable: parameters({ name: ITS_NAME }, WAIT),
  deleteVariable: NAMED,
  publish: parameters(VALUE, { ...KEYS, override: FLAG }),
  getPublished: NAMED,
  unpublish: NAMED,
  listPublished: NO_PARAMETERS,
  received: parameters({ handover: COUNT }),
  putQueue: parameters(VALUE, { ...KEYS, ...WAIT, ...SIZE }),
  getQueue: parameters({ name: ITS_NAME }, { ...WAIT, ...SIZE }),
  getQueueItems: parameters({ name: ITS_NAME }, { ...SIZE, count: COUNT }),
  queueSize: parameters({ name: ITS_NAME }, SIZE),
  deleteQueue: NAMED,
  acquireLock: parameters({ name: ITS_NAME }, WAIT),
  lockState: NAMED,
  acquireLease: parameters({ name: ITS_NAME, leases: { type: 'integer', minimum: 1 } }, WAIT),
  semaphoreState: NAMED,
  release: parameters({ lease: COUNT }),
  renew: parameters({}, { leases: { type: 'array', items: { type: 'integer' } } }),
  setEvent: NAMED,
  clearEvent: NAMED,
  isEventSet: NAMED,
  waitForEvent: parameters({ name: ITS_NAME }, WAIT),
  logEvent: parameters({}, { topics: { type: 'array', items: ITS_NAME }, message: DATA }),
  subscribe: NAMED,
  unsubscribe: NAMED,
  nextEvents: NO_PARAMETERS,
  leave: NO_PARAMETERS,
};

type Declared = typeof COORDINATION_PARAMETERS;

/** Offers a command with the parameters that are declared for it. */
type Offer = <Name extends keyof Declared>(
  command: Name,
  handler: (given: ParametersOf<Declared[Name]>, caller: Caller) => unknown,
) => void;

export function addCommands({ command }: Pick<PluginContext, 'command'>, parts: Parts): void {
  const offer: Offer = (name, handler) => {
    const declaration = { access: 'client', parameters: COORDINATION_PARAMETERS[name] } as const;
    command(name, declaration, handler as CommandHandler);
  };
  addValueCommands(offer, parts);
  addQueueCommands(offer, parts);
  addLeaseCommands(offer, parts);
  addFlagCommands(offer, parts);
  addTopicCommands(offer, parts);
  // As if the client had gone, of which the connection serves another task from now on.
  offer('leave', (_given, caller) => parts.scope.departures.leave(clientOf(caller)));
}

function addValueCommands(offer: Offer, { scope, variables, dataSets }: Parts): void {
  offer('setVariable', ({ name, ...given }) => variables.set(name, valueOf(given)));
  offer('getVariable', ({ name, timeoutMs }, caller) => {
    return variables.get(name, requestOf(caller, timeoutMs));
  });
  offer('deleteVariable', ({ name }) => variables.delete(name));
  offer('publish', ({ name, override = false, ...given }) => {
    dataSets.publish(name, valueOf(given), override);
  });
  offer('getPublished', ({ name }, caller) => dataSets.get(name, clientOf(caller)));
  offer('unpublish', ({ name }) => dataSets.unpublish(name));
  offer('listPublished', () => dataSets.names);
  offer('received', ({ handover }, caller) => scope.values.received(clientOf(caller), handover));
}

function addQueueCommands(offer: Offer, { queues }: Parts): void {
  offer('putQueue', ({ name, maxSize, timeoutMs, ...given }, caller) => {
    const queue = queues.open(name, clientOf(caller), maxSize);
    return queues.put(queue, valueOf(given), requestOf(caller, timeoutMs));
  });
  offer('getQueue', ({ name, maxSize, timeoutMs }, caller) => {
    const queue = queues.open(name, clientOf(caller), maxSize);
    return queues.get(queue, requestOf(caller, timeoutMs));
  });
  offer('getQueueItems', ({ name, maxSize, count = Infinity }, caller) => {
    const client = clientOf(caller);
    return queues.getMany(queues.open(name, client, maxSize), client, count);
  });
  offer('queueSize', ({ name, maxSize }, caller) => {
    return queues.open(name, clientOf(caller), maxSize).items.size;
  });
  offer('deleteQueue', ({ name }) => queues.delete(name));
}

function addLeaseCommands(offer: Offer, { leases, locks, semaphores }: Parts): void {
  offer('acquireLock', ({ name, timeoutMs }, caller) => {
    return locks.acquire(name, 1, requestOf(caller, timeoutMs));
  });
  offer('lockState', ({ name }) => locks.state(name));
  offer('acquireLease', ({ name, timeoutMs, leases: count }, caller) => {
    return semaphores.acquire(name, count, requestOf(caller, timeoutMs));
  });
  offer('semaphoreState', ({ name }) => semaphores.state(name));
  offer('release', ({ lease }, caller) => leases.release(clientOf(caller), lease));
  offer('renew', ({ leases: ids = [] }, caller) => leases.renew(clientOf(caller), ids));
}

function addFlagCommands(offer: Offer, { flags }: Parts): void {
  offer('setEvent', ({ name }) => flags.set(name));
  offer('clearEvent', ({ name }) => flags.clear(name));
  offer('isEventSet', ({ name }) => flags.isSet(name));
  offer('waitForEvent', ({ name, timeoutMs }, caller) => {
    return flags.wait(name, requestOf(caller, timeoutMs));
  });
}

function addTopicCommands(offer: Offer, { topics, published, enqueue }: Parts): void {
  offer('logEvent', ({ topics: names = [], message }, caller) => {
    published.check(clientOf(caller), names, message);
    enqueue({ op: 'log-event', topics: names, message });
  });
  offer('subscribe', ({ name }, caller) => topics.subscribe(clientOf(caller), name));
  offer('unsubscribe', ({ name }, caller) => topics.unsubscribe(clientOf(caller), name));
  offer('nextEvents', (_given, caller) => topics.fetch(clientOf(caller)));
}

function valueOf({
  value: bytes,
  keys = [],
}: {
  readonly value: Uint8Array;
  readonly keys?: readonly string[];
}): Value {
  return { bytes, keys };
}

function requestOf(
  caller: Caller,
  timeoutMs = Infinity,
): { readonly client: string; readonly timeoutMs: number } {
  return { client: clientOf(caller), timeoutMs };
}

/** The leases and waiting calls of a client end with the client, so there must be one. */
function clientOf({ client }: Caller): string {
  if (client !== undefined) return client;
  throw refused(
    'not-a-client',
    'only a client can hold, wait and subscribe: connect one with Client.connect',
    {},
  );
}
