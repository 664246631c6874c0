import { SystemClock } from '../../../adapters/clocks/index.ts';
import { Opaque } from '../../../adapters/dask/wire/codec.ts';
import { Comm } from '../../../adapters/dask/wire/comm.ts';
import { createScheduler } from '../../../adapters/app/start-scheduler.ts';
import type { Scheduler } from '../../../core/scheduler-host/scheduler.ts';

const clock = new SystemClock();

const ignore = (): undefined => undefined;

type Message = Readonly<Record<string, unknown>>;

/** Waits for the condition; fails just before the time limit of a test. */
export async function until(holds: () => boolean): Promise<void> {
  const deadlineMs = Date.now() + 280_000;
  while (!holds()) {
    if (Date.now() > deadlineMs) throw new Error(`did not come to hold: ${holds.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A scheduler that listens for Dask, and peers that speak as Dask does, word by word. */
export class DaskBench {
  private readonly comms: Comm[] = [];

  private constructor(
    readonly scheduler: Scheduler,
    readonly address: string,
  ) {}

  /**
   * @param config - section `scheduler`
   * @param python - for graphs that only Python can read; default: none, which costs no process
   * @param more - options of the plugin
   */
  static async start(config: object = {}, python = 'false', more: object = {}): Promise<DaskBench> {
    const scheduler = await createScheduler({
      config: { scheduler: { validate: true, ...config } },
      log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    });
    const options = { address: 'tcp://127.0.0.1:0', python, ...more };
    await scheduler.addPlugin('dask', { options });
    return new DaskBench(scheduler, String(scheduler.command('dask.address')));
  }

  async connect(): Promise<Comm> {
    const comm = await Comm.connect(this.address, { clock });
    this.comms.push(comm);
    return comm;
  }

  async call(op: string, fields: Message = {}): Promise<unknown> {
    const comm = await this.connect();
    return comm.call(op, fields);
  }

  /** The answer as it came, also when it is an exception. */
  async ask(op: string, fields: Message = {}): Promise<unknown> {
    const comm = await this.connect();
    comm.write({ op, ...fields, reply: true });
    return comm.read();
  }

  async client(id = 'Client-1', version = '2022.12.1'): Promise<FakePeer> {
    const peer = new FakePeer(await this.connect());
    peer.comm.write({
      op: 'register-client',
      client: id,
      reply: false,
      versions: { packages: { distributed: version } },
    });
    peer.first = await peer.comm.read();
    peer.listen();
    return peer;
  }

  async worker(port: number, fields: Message = {}, version = '2022.12.1'): Promise<FakePeer> {
    const peer = new FakePeer(await this.connect());
    peer.address = `tcp://127.0.0.1:${port}`;
    peer.comm.write(registration(peer.address, version, fields));
    peer.first = await peer.comm.read();
    if ((peer.first as Message)['status'] === 'OK') peer.listen();
    return peer;
  }

  /** A worker that takes tasks. */
  async runningWorker(port: number, fields: Message = {}, version?: string): Promise<FakePeer> {
    const worker = await this.worker(port, fields, version);
    worker.run();
    await until(() => this.scheduler.cluster.workers.get(worker.address)?.status === 'running');
    return worker;
  }

  async close(): Promise<void> {
    for (const comm of this.comms) comm.abort(new Error('the test is over'));
    await this.scheduler.close();
  }
}

export function registration(address: string, version: string, fields: Message): Message {
  return {
    op: 'register-worker',
    reply: false,
    address,
    status: 'init',
    keys: [],
    nthreads: 1,
    name: address,
    nbytes: {},
    types: {},
    now: Date.now() / 1000,
    resources: {},
    memory_limit: 2 ** 30,
    local_directory: '/tmp/nowhere',
    services: {},
    nanny: null,
    pid: 1,
    versions: { packages: { distributed: version } },
    metrics: {},
    extra: {},
    stimulus_id: 'worker-connect-1',
    server_id: `Worker-${address}`,
    ...fields,
  };
}

/** One end of a stream, with everything that it received. */
export class FakePeer {
  address = '';
  /** What it was answered first. */
  first: unknown;
  readonly batches: Message[][] = [];
  closed = false;

  constructor(readonly comm: Comm) {}

  get told(): Message[] {
    return this.batches.flat();
  }

  get ops(): unknown[] {
    return this.told.map(({ op }) => op);
  }

  of(op: string): Message[] {
    return this.told.filter((message) => message['op'] === op);
  }

  async next(op: string, count = 1): Promise<Message> {
    await until(() => this.of(op).length >= count);
    return this.of(op)[count - 1]!;
  }

  listen(): void {
    this.comm.attach({
      onMessage: (batch) => this.batches.push(batch as Message[]),
      onClose: () => {
        this.closed = true;
      },
    });
  }

  send(...messages: Message[]): void {
    this.comm.send(...messages);
  }

  run(): void {
    this.send({ op: 'worker-status-change', status: 'running', stimulus_id: 'running' });
  }

  submit(key: string, more: Message = {}): void {
    this.send({
      op: 'update-graph-hlg',
      hlg: {
        layers: [
          {
            __module__: 'dask.highlevelgraph',
            __name__: 'MaterializedLayer',
            annotations: more['annotations'] ?? null,
            state: { dsk: { [key]: callSpec() }, dependencies: { [key]: [] } },
          },
        ],
      },
      keys: [key],
      priority: { [key]: 0 },
      submitting_task: null,
      fifo_timeout: '60s',
      actors: false,
      code: null,
    });
  }

  finish(key: string, more: Message = {}): void {
    this.send({
      op: 'task-finished',
      status: 'OK',
      key,
      nbytes: 28,
      type: new Uint8Array([1]),
      typename: 'int',
      metadata: {},
      thread: 1,
      startstops: [{ action: 'compute', start: 1.5, stop: 1.6 }],
      stimulus_id: `task-finished-${key}`,
      ...more,
    });
  }

  fail(key: string, more: Message = {}): void {
    this.send({
      op: 'task-erred',
      status: 'error',
      key,
      exception: new Opaque('serialized', HEADER, [new Uint8Array([9])]),
      traceback: null,
      exception_text: "ValueError('no')",
      traceback_text: '',
      thread: 1,
      startstops: [],
      stimulus_id: `task-erred-${key}`,
      ...more,
    });
  }
}

function callSpec(): Message {
  return { function: new Uint8Array([1, 2, 3]), args: new Uint8Array([4, 5]) };
}

/** msgpack of {"num-sub-frames": 1}. */
const HEADER = Uint8Array.from([0x81, 0xae, ...Buffer.from('num-sub-frames'), 1]);
