import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { nameIn } from './coordination.ts';

interface Topic {
  /** Addresses of workers that publish. */
  readonly publishers: Set<string>;
  /** Addresses of workers that listen. */
  readonly workers: Set<string>;
  /** Ids of clients that listen. */
  readonly clients: Set<string>;
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
