import { randomUUID } from 'node:crypto';
import { type Timer, YardmasterError } from '../../core/api/index.ts';
import { asList, type Fields, listIn, numberIn, textIn } from './wire/codec.ts';
import type { DaskContext, DaskExtension, MakeExtension } from './context.ts';
import { MEASURES } from './options.ts';
import { PythonException } from './wire/py-errors.ts';
import { Coordination, type GivenValue, nameIn } from './coordination.ts';

/** The time for which a data set may be ahead of its graphs. */
const PATIENCE_MS = 10_000;

class Publish {
  /** Names as Dask knows them, by text. */
  private readonly names = new Map<string, unknown>();
  /** Requests that wait for the stream of their client, and streams that came first. */
  private readonly flushes = new Map<string, (() => void) | { readonly flushedBy: string }>();
  private readonly coordination: Coordination;

  constructor(private readonly context: DaskContext) {
    this.coordination = new Coordination(context);
  }

  async list(): Promise<unknown[]> {
    const names = await this.coordination.call<readonly string[]>('listPublished', {});
    return [...names].sort().map((name) => this.names.get(name) ?? name);
  }

  /** One data set before 2025, several at once since. */
  async put(request: Fields): Promise<Fields> {
    await this.streamOf(request);
    const names = listIn(request, 'names');
    if (names === undefined) {
      await this.putOne(request['name'], request['keys'], request['data'], request);
      return { status: 'OK', name: request['name'] };
    }
    const [keys = [], data = []] = [listIn(request, 'keys'), listIn(request, 'data')];
    for (let index = 0; index < names.length; index++) {
      await this.putOne(names[index], keys[index], data[index], request);
    }
    return { status: 'OK' };
  }

  async get(request: Fields): Promise<unknown> {
    const names = listIn(request, 'names');
    if (names === undefined) return this.getOne(nameIn(request));
    return Promise.all(names.map((name) => this.getOne(nameIn({ name }))));
  }

  async delete(request: Fields): Promise<void> {
    await this.streamOf(request);
    const names = listIn(request, 'names') ?? [request['name']];
    for (const each of names) {
      const name = nameIn({ name: each });
      this.names.delete(name);
      await ifKnown(this.coordination.call('unpublish', { name }));
    }
  }

  forgetClient(client: string): void {
    for (const [id, flush] of this.flushes) {
      if (typeof flush === 'object' && flush.flushedBy === client) this.flushes.delete(id);
    }
  }

  flushed(uid: unknown, client: string): void {
    const id = flushId(uid);
    const waiting = this.flushes.get(id);
    if (typeof waiting === 'function') waiting();
    else this.flushes.set(id, { flushedBy: client });
  }

  private async putOne(
    wire: unknown,
    wireKeys: unknown,
    data: unknown,
    request: Fields,
  ): Promise<void> {
    const name = nameIn({ name: wire });
    const override = request['override'] === true;
    const keys = this.context.keys.textsOf(asList(wireKeys) ?? []);
    const known = await this.knownOf(keys);
    const value = this.coordination.packData({ data, keys: wireKeys }, unreadable(name));
    try {
      await this.coordination.call('publish', { name, value, keys: known, override });
    } catch (error) {
      if (!isRefused(error, 'exists')) throw error;
      throw new PythonException('KeyError', `Dataset ${name} already exists`);
    }
    if (wire !== name) this.names.set(name, wire);
  }

  /** Of a Node client it is data without keys. */
  private async getOne(name: string): Promise<unknown> {
    const given = await ifKnown(this.coordination.call<GivenValue>('getPublished', { name }));
    if (given === undefined) return null;
    if (given.handover !== undefined) {
      // The data set keeps its results; a client that creates futures of it asks for their keys.
      this.coordination.notify('received', { handover: given.handover });
    }
    const record = this.coordination.unpack(given);
    if (record.type === 'Future') throw futurePublished(name);
    const { value } = record;
    return this.coordination.isOfDask(given) ? value : { data: value, keys: given.keys };
  }

  private async knownOf(keys: readonly string[]): Promise<string[]> {
    const { cluster } = this.context;
    const missing = keys.find((key) => !cluster.tasks.has(key));
    if (missing !== undefined) {
      await this.coordination.known(missing, PATIENCE_MS).catch(() => undefined);
    }
    return keys.filter((key) => cluster.tasks.has(key));
  }

  /** Waits until the messages that the client sent on its stream before the request have taken effect. */
  async streamOf({ uid, client }: Fields): Promise<void> {
    if (uid === undefined) return;
    const id = flushId(uid);
    if (typeof this.flushes.get(id) !== 'object') {
      const { clock } = this.context;
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (this.context.clients.has(String(client))) timer = clock.setTimer(PATIENCE_MS, look);
          else resolve();
        };
        let timer = clock.setTimer(PATIENCE_MS, look);
        this.flushes.set(id, () => {
          timer.cancel();
          resolve();
        });
      });
    }
    this.flushes.delete(id);
  }
}

/** `client.publish_dataset`: published data sets of the scheduler's coordination. */
export const makePublish: MakeExtension = (context): DaskExtension => {
  const publish = new Publish(context);
  return {
    rpc: {
      publish_list: () => publish.list(),
      publish_put: (request) => publish.put(request),
      publish_wait_flush: (request) => publish.streamOf(request),
      publish_get: (request) => publish.get(request),
      publish_delete: (request) => publish.delete(request),
    },
    clientOps: {
      publish_flush_batched_send: ({ uid }, client) => publish.flushed(uid, client.id),
    },
    clientGone: ({ id }) => publish.forgetClient(id),
  };
};

/** Dask's clients publish pickles, whatever they hold. */
function unreadable(name: string): Error {
  return new Error(
    `a client of Dask published "${name}" as an object of Python, which cannot be read in JavaScript; plain data or one future it can give by a Variable or a Queue`,
  );
}

/** Dask expects the future as an object of Python, in a pickle. */
function futurePublished(name: string): PythonException {
  return new PythonException(
    'NotImplementedError',
    `a client in JavaScript published "${name}" as a future; Dask can take plain data from there, and one future from a Variable or a Queue`,
  );
}

function flushId(uid: unknown): string {
  return uid instanceof Uint8Array ? Buffer.from(uid).toString('hex') : String(uid);
}

/** Undefined when there is no such data set. */
async function ifKnown<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isRefused(error, 'unknown')) return undefined;
    throw error;
  }
}

function isRefused(error: unknown, reason: string): boolean {
  return YardmasterError.is(error, 'ERR_COORDINATION') && error.data['reason'] === reason;
}

interface Topic {
  /** Addresses of workers that publish. */
  readonly publishers: Set<string>;
  /** Addresses of workers that listen. */
  readonly workers: Set<string>;
  /** Ids of clients that listen. */
  readonly clients: Set<string>;
}

class Topics {
  private readonly topics = new Map<string, Topic>();

  constructor(private readonly context: DaskContext) {}

  addPublisher(request: Fields): Fields {
    const topic = this.open(nameIn(request));
    topic.publishers.add(String(request['worker']));
    return {
      subscribers: Object.fromEntries([...topic.workers].map((address) => [address, {}])),
      'publish-scheduler': topic.clients.size > 0,
    };
  }

  addWorker(name: string, address: string): void {
    const topic = this.open(name);
    topic.workers.add(address);
    this.tellPublishers(topic, { op: 'pubsub-add-subscriber', address, name });
  }

  removeWorker(name: string, address: string): void {
    const topic = this.topics.get(name);
    if (topic?.workers.delete(address) !== true) return;
    this.tellPublishers(topic, { op: 'pubsub-remove-subscriber', address, name });
    this.dropUnused(name, topic);
  }

  removePublisher(name: string, address: string): void {
    const topic = this.topics.get(name);
    if (topic?.publishers.delete(address) === true) this.dropUnused(name, topic);
  }

  addClient(name: string, id: string): void {
    const topic = this.open(name);
    topic.clients.add(id);
    this.tellPublishers(topic, { op: 'pubsub-publish-scheduler', name, publish: true });
  }

  removeClient(name: string, id: string): void {
    const topic = this.topics.get(name);
    if (topic?.clients.delete(id) !== true) return;
    if (topic.clients.size === 0) {
      this.tellPublishers(topic, { op: 'pubsub-publish-scheduler', name, publish: false });
    }
    this.dropUnused(name, topic);
  }

  toClients(name: string, { msg }: Fields): void {
    for (const id of this.topics.get(name)?.clients ?? []) {
      this.context.clients.get(id)?.send({ op: 'pubsub-msg', name, msg });
    }
  }

  toWorkers(name: string, { msg }: Fields): void {
    for (const address of this.topics.get(name)?.workers ?? []) {
      this.context.workers.get(address)?.send({ op: 'pubsub-msg', name, msg });
    }
  }

  forgetClient(id: string): void {
    for (const name of [...this.topics.keys()]) this.removeClient(name, id);
  }

  forgetWorker(address: string): void {
    for (const name of [...this.topics.keys()]) {
      this.removeWorker(name, address);
      this.removePublisher(name, address);
    }
  }

  private open(name: string): Topic {
    let topic = this.topics.get(name);
    if (topic === undefined) {
      topic = { publishers: new Set(), workers: new Set(), clients: new Set() };
      this.topics.set(name, topic);
    }
    return topic;
  }

  private tellPublishers({ publishers }: Topic, message: Fields): void {
    for (const address of publishers) this.context.workers.get(address)?.send(message);
  }

  private dropUnused(name: string, { publishers, workers, clients }: Topic): void {
    if (publishers.size + workers.size + clients.size === 0) this.topics.delete(name);
  }
}

/** `distributed.Pub` and `Sub` (until 2025): workers talk to each other, and to clients through us. */
export const makePubSub: MakeExtension = (context): DaskExtension => {
  const topics = new Topics(context);
  return {
    rpc: {
      pubsub_add_publisher: (request) => topics.addPublisher(request),
    },
    workerOps: {
      'pubsub-add-subscriber': (message, worker) =>
        topics.addWorker(nameIn(message), worker.address),
      'pubsub-remove-subscriber': (message, worker) =>
        topics.removeWorker(nameIn(message), worker.address),
      'pubsub-remove-publisher': (message, worker) =>
        topics.removePublisher(nameIn(message), worker.address),
      'pubsub-msg': (message) => topics.toClients(nameIn(message), message),
    },
    clientOps: {
      'pubsub-add-subscriber': (message, client) => topics.addClient(nameIn(message), client.id),
      'pubsub-remove-subscriber': (message, client) =>
        topics.removeClient(nameIn(message), client.id),
      'pubsub-msg': (message) => {
        topics.toClients(nameIn(message), message);
        topics.toWorkers(nameIn(message), message);
      },
    },
    clientGone: ({ id }) => topics.forgetClient(id),
    hooks: { workerRemoved: ({ address }) => topics.forgetWorker(address) },
  };
};

interface Sampling {
  readonly timer: Timer;
  /** Seconds since 1970, and bytes. */
  samples: (readonly [number, number])[];
}

/** Of one request; beyond that every second one is dropped. */
const SAMPLES_MAX = 100_000;

/** `distributed.diagnostics.MemorySampler`: how much memory the workers use together, over time. */
export const makeMemorySampler: MakeExtension = (context): DaskExtension => {
  const running = new Map<string, Sampling>();

  function start(request: Fields): string {
    const measure = measureIn(request);
    const client = textIn(request, 'client');
    const intervalMs = 1000 * (numberIn(request, 'interval') ?? 0.5);
    const key = randomUUID();
    const take = (): void => {
      const { samples } = sampling;
      samples.push([context.nowS(), sum(context, measure)]);
      if (samples.length <= SAMPLES_MAX) return;
      sampling.samples = samples.filter((_sample, place) => place % 2 === 0);
    };
    const timer = context.plugin.every(intervalMs, () => {
      if (context.clients.has(client)) take();
      else stop(key);
    });
    const sampling: Sampling = { timer, samples: [] };
    take();
    running.set(key, sampling);
    return key;
  }

  function stop(key: string): Sampling['samples'] {
    const sampling = running.get(key);
    if (sampling === undefined) throw new PythonException('KeyError', key);
    running.delete(key);
    sampling.timer.cancel();
    return sampling.samples;
  }

  return {
    rpc: {
      memory_sampler_start: (request) => start(request),
      memory_sampler_stop: (request) => stop(textIn(request, 'key')),
    },
    close: () => {
      for (const { timer } of running.values()) timer.cancel();
    },
  };
};

function measureIn(request: Fields): keyof typeof MEASURES {
  const measure = textIn(request, 'measure');
  if (Object.hasOwn(MEASURES, measure)) return measure as keyof typeof MEASURES;
  throw new PythonException(
    'ValueError',
    `${measure} is no measure of memory; there are ${Object.keys(MEASURES).join(', ')}`,
  );
}

function sum({ cluster }: DaskContext, measure: keyof typeof MEASURES): number {
  let nbytes = 0;
  for (const { memory } of cluster.workers.values()) nbytes += memory[MEASURES[measure]];
  return nbytes;
}
