import { YardmasterError } from '../../../core/api/index.ts';
import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { asList, listIn } from '../codec/values.ts';
import { Coordination, type GivenValue, nameIn } from './coordination.ts';

/** How long a data set may be ahead of its graphs. */
const PATIENCE_MS = 10_000;

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
      publish_flush_batched_send: ({ uid }) => publish.flushed(uid),
    },
  };
};

class Publish {
  /** Names as Dask knows them, by text. */
  private readonly names = new Map<string, unknown>();
  /** Requests that wait for the stream of their client, and streams that came first. */
  private readonly flushes = new Map<string, (() => void) | 'flushed'>();
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

  flushed(uid: unknown): void {
    const id = flushId(uid);
    const waiting = this.flushes.get(id);
    if (typeof waiting === 'function') waiting();
    else this.flushes.set(id, 'flushed');
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

  /** What the client said on its stream before the request must take effect first. */
  async streamOf({ uid, client }: Fields): Promise<void> {
    if (uid === undefined) return;
    const id = flushId(uid);
    if (this.flushes.get(id) !== 'flushed') {
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
