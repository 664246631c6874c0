import {
  type Channel,
  type Clock,
  type ComputeTask,
  every,
  type RegisterWorkerReply,
  type Timer,
  type ToWorkerMessage,
  type Transport,
  type WireMessage,
  type WorkerIdentity,
  type WorkerMetrics,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { SystemClock } from '../../adapters/clocks/system-clock.ts';
import { openChannelTo } from '../../adapters/peers/peers.ts';

/** The description that a zero worker gives of itself. */
interface ZeroWorkerOptions {
  readonly name: string;
  /** Tasks at once. */
  readonly threads: number;
  /** Bytes that it reports for each result. */
  readonly resultBytes: number;
  readonly clock: Clock;
  readonly transports: readonly Transport[];
  /** Milliseconds for the connection to be made and answered. */
  readonly timeoutMs: number;
}

/** It never has anything in memory. */
const METRICS: WorkerMetrics = {
  memoryBytes: 0,
  spilledMemoryBytes: 0,
  spilledDiskBytes: 0,
  managedBytes: 0,
};

/**
 * A worker that computes nothing: it reports each assigned task as finished at once, and each
 * requested replica as fetched. What remains is the work of the scheduler and the network.
 */
class ZeroWorker {
  /** Tasks that it reported as finished. */
  finishedCount = 0;
  /**
   * Resolves when the connection has been closed on request; rejects when it has ended otherwise.
   */
  readonly closed: Promise<void>;
  private channel: Channel | undefined;
  private heartbeats: Timer | undefined;
  private isClosing = false;
  private settle!: (error?: Error) => void;

  private constructor(
    readonly address: string,
    private readonly options: ZeroWorkerOptions,
  ) {
    this.closed = new Promise((resolve, reject) => {
      this.settle = (error) => {
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    this.closed.catch(() => undefined); // Its users handle the rejection.
  }

  /** @throws YardmasterError as for any worker that cannot register */
  static async start(scheduler: string, options: ZeroWorkerOptions): Promise<ZeroWorker> {
    const worker = new ZeroWorker(`zero://${options.name}`, options);
    try {
      await worker.register(scheduler);
    } catch (error) {
      worker.end();
      throw error;
    }
    return worker;
  }

  async close(): Promise<void> {
    this.end();
    await this.channel?.close();
  }

  private async register(scheduler: string): Promise<void> {
    const { clock, transports, timeoutMs, threads, name } = this.options;
    this.channel = await openChannelTo(
      scheduler,
      'worker',
      { clock, transports, timeoutMs },
      {
        onMessage: (message) => {
          this.onMessage(message as unknown as ToWorkerMessage);
        },
        onRequest: (method) => this.refuse(method),
        onClose: (error) => {
          this.onClose(error);
        },
      },
    );
    const identity: WorkerIdentity = {
      address: this.address,
      serverId: this.address,
      name,
      host: 'zero',
      threadCount: threads,
      memoryLimitBytes: 0,
      resources: {},
    };
    const reply = await this.channel.request<RegisterWorkerReply>(
      'register-worker',
      { identity, status: 'running', metrics: METRICS },
      timeoutMs,
    );
    this.heartbeats = every(clock, reply.heartbeatIntervalMs, () => {
      const workerNowMs = clock.nowMs();
      this.send({ op: 'heartbeat-worker', metrics: METRICS, executing: [], workerNowMs });
    });
  }

  private onMessage(message: ToWorkerMessage): void {
    switch (message.op) {
      case 'compute-task':
        this.finish(message);
        break;
      case 'acquire-replicas':
        this.send({ op: 'add-keys', keys: message.replicas.keys });
        break;
      case 'steal-request': {
        // It was finished before the request came, and the report is on its way.
        const { keys, runIds } = message;
        this.send({ op: 'steal-response', keys, runIds, states: keys.map(() => 'memory') });
        break;
      }
      case 'close':
        inBackground(this.close(), 'a zero worker could not close in good order');
        break;
      case 'free-keys':
      case 'remove-replicas':
      case 'refresh-who-has':
      case 'set-priority':
      case 'extend-time-limits':
      case 'resume-run':
      case 'remove-worker':
      case 'worker-status-change':
        break; // There is nothing that could be dropped, fetched, reordered or stopped.
    }
  }

  private finish({ key, runId }: ComputeTask): void {
    const nowS = this.options.clock.nowMs() / 1000;
    this.finishedCount++;
    this.send({
      op: 'task-finished',
      key,
      runId,
      nbytes: this.options.resultBytes,
      type: 'zero',
      timings: [{ action: 'compute', startS: nowS, stopS: nowS }],
    });
  }

  private send(report: WireMessage): void {
    this.channel?.send(report);
  }

  private refuse(method: string): never {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `${this.address} cannot answer "${method}": a zero worker has neither data nor a process to look into`,
      { method, worker: this.address },
    );
  }

  private onClose(error: Error | undefined): void {
    const wasAsked = this.isClosing;
    this.end(wasAsked ? undefined : (error ?? this.gone()));
  }

  private gone(): YardmasterError {
    const { address } = this;
    const text = `the scheduler closed the connection to the zero worker ${address}`;
    return new YardmasterError('ERR_CLOSED', text, { worker: address });
  }

  private end(error?: Error): void {
    this.isClosing = true;
    this.heartbeats?.cancel();
    this.settle(error);
  }
}

/** Workers that finish every task at once: for measuring a scheduler alone, over the real wire. */

/** Workers that compute nothing. Everything has a default. */
export interface ZeroWorkersOptions {
  /** The number of workers. Default 1. */
  readonly workers?: number;
  /** Tasks at once for each. Default 1. */
  readonly threads?: number;
  /** Bytes that they report for each result. Default 0. */
  readonly resultBytes?: number;
  /** Each is called this and a number. Default `zero`. */
  readonly name?: string;
  /** Ways to reach the scheduler besides `tcp`. */
  readonly transports?: readonly Transport[];
  readonly clock?: Clock;
  /** Milliseconds for each connection to be made and answered. Default 10 000. */
  readonly timeoutMs?: number;
}

/** Zero workers that are registered. */
export interface ZeroWorkers {
  readonly addresses: readonly string[];
  /** Tasks that they reported as finished, all together. */
  readonly finishedCount: number;
  /** Resolves when all were closed; rejects when one lost the scheduler. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Starts workers that report every task as finished as soon as it is assigned, and report every
 * replica that they are asked to fetch as fetched. They have no results: a client can wait for its
 * tasks, but cannot gather them.
 *
 * @param scheduler - address of a scheduler
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION`
 */
export async function startZeroWorkers(
  scheduler: string,
  options: ZeroWorkersOptions = {},
): Promise<ZeroWorkers> {
  const { workers: count = 1, threads = 1, resultBytes = 0, name = 'zero' } = options;
  const { clock = new SystemClock(), transports = [], timeoutMs = CONNECT_TIMEOUT_MS } = options;
  const workers: ZeroWorker[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.close()));
  };
  try {
    // One after the other: they get the same ranks in each run.
    for (let index = 0; index < count; index++) {
      const own = { name: `${name}-${index}`, threads, resultBytes, clock, transports, timeoutMs };
      workers.push(await ZeroWorker.start(scheduler, own));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const closed = Promise.all(workers.map((worker) => worker.closed)).then(() => undefined);
  closed.catch(() => undefined); // Its users handle the rejection.
  return {
    addresses: workers.map((worker) => worker.address),
    get finishedCount(): number {
      return workers.reduce((sum, worker) => sum + worker.finishedCount, 0);
    },
    closed,
    close,
  };
}
