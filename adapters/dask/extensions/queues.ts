import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { numberIn } from '../codec/values.ts';
import { Coordination, type GivenValue, nameIn, timeoutIn } from './coordination.ts';
import { FutureHandovers } from './future-handovers.ts';

/** How long a future may be ahead of its graph. */
const PATIENCE_MS = 30_000;

/** `distributed.Queue`: queues of the scheduler's coordination. */
export const makeQueues: MakeExtension = (context): DaskExtension => {
  const queues = new Queues(context);
  return {
    rpc: {
      queue_create: (request) => queues.create(request),
      queue_put: (request) => queues.put(request),
      queue_get: (request) => queues.get(request),
      queue_qsize: (request) => queues.size(request),
    },
    clientOps: {
      'queue-future-release': (message, client) => queues.handovers.received(message, client.id),
      queue_release: (message) => queues.release(nameIn(message)),
    },
  };
};

interface Queue {
  readonly maxSize: number | undefined;
  /** Objects in clients that stand for it. */
  referenceCount: number;
}

class Queues {
  readonly handovers: FutureHandovers;
  private readonly queues = new Map<string, Queue>();
  private readonly coordination: Coordination;

  constructor(context: DaskContext) {
    this.coordination = new Coordination(context);
    this.handovers = new FutureHandovers(this.coordination);
  }

  create(request: Fields): void {
    const name = nameIn(request);
    const queue = this.queues.get(name);
    if (queue !== undefined) {
      queue.referenceCount++;
      return;
    }
    const maxSize = numberIn(request, 'maxsize') ?? 0;
    this.queues.set(name, { maxSize: maxSize > 0 ? maxSize : undefined, referenceCount: 1 });
  }

  /** The last object that stands for the queue is gone, and with it what was in the queue. */
  release(name: string): void {
    const queue = this.queues.get(name);
    if (queue === undefined || --queue.referenceCount > 0) return;
    this.queues.delete(name);
    this.coordination.notify('deleteQueue', { name });
  }

  async put(request: Fields): Promise<void> {
    const timeoutMs = timeoutIn(request);
    const record = await this.coordination.recordIn(request, timeoutMs ?? PATIENCE_MS);
    const stored = this.coordination.pack(record);
    const parameters = { ...this.queueIn(request), ...stored, timeoutMs };
    await this.coordination.call('putQueue', parameters, request['client']);
  }

  async get(request: Fields): Promise<unknown> {
    const { batch = false } = request;
    if (batch === false || batch === null) return this.getOne(request, timeoutIn(request));
    if (batch === true) return this.getAll(request);
    if (timeoutIn(request) !== undefined) {
      throw new PythonException(
        'NotImplementedError',
        "Dask queues don't support simultaneous use of integer batch sizes and timeouts",
      );
    }
    const records: unknown[] = [];
    for (let left = numberIn(request, 'batch') ?? 0; left > 0; left--) {
      records.push(await this.getOne(request, undefined));
    }
    return records;
  }

  size(request: Fields): Promise<number> {
    return this.coordination.call('queueSize', this.queueIn(request), request['client']);
  }

  private async getOne(request: Fields, timeoutMs: number | undefined): Promise<Fields> {
    const parameters = { ...this.queueIn(request), timeoutMs };
    const { client } = request;
    return this.give(
      request,
      await this.coordination.call<GivenValue>('getQueue', parameters, client),
    );
  }

  private async getAll(request: Fields): Promise<Fields[]> {
    const { client } = request;
    const items = await this.coordination.call<readonly GivenValue[]>(
      'getQueueItems',
      this.queueIn(request),
      client,
    );
    return items.map((given) => this.give(request, given));
  }

  private give(request: Fields, given: GivenValue): Fields {
    const record = this.coordination.unpack(given);
    if (record.type === 'Future') this.handovers.add(nameIn(request), record.value, given);
    return this.coordination.describe(record);
  }

  private queueIn(request: Fields): { name: string; maxSize: number | undefined } {
    const name = nameIn(request);
    return { name, maxSize: this.queues.get(name)?.maxSize };
  }
}
