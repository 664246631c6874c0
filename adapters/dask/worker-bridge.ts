import {
  type Channel,
  type ChannelHandlers,
  type ClusterView,
  type ComputeTask,
  type RegisterWorkerReply,
  type StealRequest,
  toErrorPayload,
  type ToWorkerMessage,
  type WireMessage,
  type WorkerReport,
  YardmasterError,
} from '../../core/api/index.ts';
import { sayHello } from '../../core/shared/channels.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { Waiters } from '../../core/util/promises.ts';
import { unreachableAddress } from '../../core/util/hosts.ts';
import { countOf } from '../../core/util/values.ts';
import {
  asList,
  type Dialect,
  dialectOf,
  entriesOf,
  type Fields,
  isFields,
  numberIn,
  versionIn,
} from './wire/codec.ts';
import { openChannel } from './wire/comm-pool.ts';
import type { Comm } from './wire/comm.ts';
import { ownHosts } from './wire/listener.ts';
import { pythonRunSpec } from './dask-peer.ts';
import { pythonCallOf } from './wire/python.ts';
import { callStacksOf, taskProfileOf } from './inspection.ts';
import { checkParameters } from './parameters.ts';
import { failureOf, PythonException } from './wire/py-errors.ts';
import {
  type BridgedWorker,
  type BridgeHost,
  computeTask,
  heartbeatOf,
  identityOf,
  isPythonTask,
  metricsOf,
  simpleReport,
  statusOf,
  stimulusOf,
  taskErred,
  taskFinished,
  toWorker,
} from './translate.ts';

const NO_FIELDS: Fields = {};

/**
 * A Dask worker as a worker of the scheduler: on one side its stream, on the other a connection to the
 * scheduler like that of any worker. When one side ends, so does the other.
 */
export class WorkerBridge implements BridgedWorker, ChannelHandlers {
  readonly address: string;
  readonly name: unknown;
  readonly nanny: string | undefined;
  readonly dialect: Dialect;
  metrics: Fields;
  private readonly channel: Channel;
  /** Messages from the scheduler that arrived before the worker had its answer. */
  private held: ToWorkerMessage[] | undefined = [];
  /**
   * Numbers of assignments. Old workers do not know them, and workers before 2025 do not include
   * them in each report.
   */
  private readonly runIds = new Map<string, number>();
  /** Numbers of the assignments that were asked back. */
  private readonly asked = new Map<string, number>();

  private constructor(
    private readonly comm: Comm,
    readonly registration: Fields,
    private readonly host: BridgeHost,
  ) {
    const identity = identityOf(registration);
    this.address = identity.address;
    this.name = registration['name'] ?? this.address;
    this.nanny = identity.nanny;
    this.dialect = dialectOf(versionIn(registration['versions']));
    this.metrics = isFields(registration['metrics']) ? registration['metrics'] : NO_FIELDS;
    this.channel = openChannel(host.plugin, this);
  }

  /**
   * Brings a worker in. It is answered here, also when it is refused.
   * @throws YardmasterError when it is neither admitted nor refused in good order
   */
  static async open(comm: Comm, request: Fields, host: BridgeHost): Promise<void> {
    const count = entriesOf(request['nbytes']).length;
    if (count > 0) {
      refuse(
        comm,
        host,
        `the worker ${String(request['address'])} came back with ${countOf(count, 'result')} in memory; it has to come without any`,
      );
      return;
    }
    const wrong = unreachableAddress(String(request['address']), comm.peerAddress, ownHosts);
    if (wrong !== undefined) {
      refuse(comm, host, wrong);
      return;
    }
    const bridge = new WorkerBridge(comm, request, host);
    await bridge.register();
  }

  send(...messages: readonly Fields[]): void {
    this.comm.send(...messages);
  }

  hold(isHeld: boolean): void {
    this.comm.hold(isHeld);
  }

  /** Handles a heartbeat, which the worker sends on a separate connection. */
  heartbeat(request: Fields): void {
    if (isFields(request['metrics'])) this.metrics = request['metrics'];
    this.report(heartbeatOf(request, this.host.keys));
  }

  onMessage(message: WireMessage): void {
    const typed = message as unknown as ToWorkerMessage;
    if (this.held !== undefined) this.held.push(typed);
    else this.tell(typed);
  }

  onRequest(method: string, { what, keys, sinceMs }: WireMessage): unknown {
    if (method === 'inspect' && what === 'call-stacks') {
      return callStacksOf(this.address, keys as readonly string[] | undefined, this.host);
    }
    if (method === 'inspect' && what === 'profile') {
      return taskProfileOf(this.address, sinceMs as number | undefined, this.host).then(
        (profile) => ({ profile }),
      );
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `${this.address} is a worker of Dask, which does not answer "${method}"; ask it through a client of Dask`,
      { method, worker: this.address },
    );
  }

  /** The scheduler has let the worker go. */
  onClose(error?: Error): void {
    this.host.removeWorker(this);
    if (error === undefined) inBackground(this.comm.close(), (failed) => this.comm.abort(failed));
    else this.comm.abort(error);
  }

  private async register(): Promise<void> {
    const { comm, host, registration } = this;
    try {
      await sayHello(this.channel, 'worker');
      await this.channel.request<RegisterWorkerReply>('register-worker', {
        identity: identityOf(registration),
        status: statusOf(registration['status']),
        metrics: metricsOf(this.metrics),
      });
    } catch (error) {
      this.channel.abort(error as Error);
      this.answerRefusal(error);
      return;
    }
    host.addWorker(this);
    comm.trust();
    comm.write({
      status: 'OK',
      time: host.nowS(),
      'heartbeat-interval': host.heartbeatIntervalS(),
      'worker-plugins': host.workerPluginsFor(this),
    });
    const held = this.held ?? [];
    this.held = undefined;
    for (const message of held) this.tell(message);
    comm.attach({
      onMessage: (batch) => {
        for (const message of asList(batch) ?? [batch]) this.take(message);
      },
      onClose: (error) => this.onCommClosed(error),
    });
  }

  private answerRefusal(error: unknown): void {
    const { comm, host } = this;
    const field = YardmasterError.is(error, 'ERR_REGISTRATION') ? error.data['field'] : undefined;
    if (field === 'name') refuse(comm, host, `name taken, ${String(this.name)}`);
    else if (field === 'address') {
      host.fail(comm, new PythonException('ValueError', `Worker already exists ${this.address}`));
    } else if (YardmasterError.is(error, 'ERR_CLOSED')) host.fail(comm, error);
    else refuse(comm, host, (error as Error).message);
  }

  private onCommClosed(error: Error | undefined): void {
    if (error === undefined) this.closeChannel();
    else this.channel.abort(error);
    this.host.removeWorker(this);
  }

  // ---- from the worker ------------------------------------------------------------------------

  private take(message: unknown): void {
    if (!isFields(message)) return; // Acknowledgements are plain texts.
    const { op } = message;
    try {
      checkParameters('stream', String(op), message);
      if (op === 'task-finished') this.onFinished(message);
      else if (op === 'close-stream') this.onGoodbye();
      else this.takeOther(String(op), message);
    } catch (cause) {
      this.host.plugin.report(
        new YardmasterError(
          'ERR_PROTOCOL',
          `the message ${String(op)} of worker ${this.address} cannot be used: ${(cause as Error).message}`,
          { op, worker: this.address },
          { cause },
        ),
      );
    }
  }

  private onFinished(message: Fields): void {
    const { host } = this;
    const key = host.keys.textOf(message['key']);
    const runId = this.runIdOf(message, key);
    this.forgetRun(key);
    const report = taskFinished(message, key, runId);
    host.types.learn(report.type, message['type']);
    host.taskDone(message, key, this, runId);
    this.report(report);
  }

  private onErred(message: Fields): void {
    const key = this.host.keys.textOf(message['key']);
    if (this.host.relay.isAwaited(this.address, key)) {
      this.onUnreadable(key, message);
      return;
    }
    const runId = this.runIdOf(message, key);
    this.forgetRun(key);
    this.host.taskDone(message, key, this, runId);
    this.report(taskErred(message, key, runId));
  }

  /** Handles a relayed message that the worker could not read: a package lacks there, as a rule. */
  private onUnreadable(key: string, message: Fields): void {
    const { exceptionText } = failureOf(message);
    const error = new YardmasterError(
      'ERR_NOT_PORTABLE',
      `${this.address} cannot read the result of "${key}", which was made in JavaScript: ${exceptionText}`,
      { result: key, worker: this.address, exception: exceptionText },
    );
    this.host.relay.refuse(this, new Map([[key, error]]));
    const keys = [this.host.keys.wireOf(key)];
    this.comm.send({ op: 'free-keys', keys, stimulus_id: 'not-portable' });
  }

  private onLongRunning(message: Fields): void {
    const key = this.host.keys.textOf(message['key']);
    const computeDurationS = numberIn(message, 'compute_duration');
    this.report({
      op: 'long-running',
      stimulusId: stimulusOf(message),
      key,
      runId: this.runIdOf(message, key),
      ...(computeDurationS === undefined
        ? {}
        : { computeDurationS: Math.max(0, computeDurationS) }),
    });
  }

  private onStealResponse(message: Fields): void {
    const key = this.host.keys.textOf(message['key']);
    const runId = this.asked.get(key);
    this.asked.delete(key);
    const { state } = message;
    this.report({
      op: 'steal-response',
      stimulusId: stimulusOf(message),
      keys: [key],
      runIds: [runId ?? -1],
      states: [typeof state === 'string' ? state : 'unknown'],
    });
  }

  /** It leaves on purpose: what it was computing is not to blame. */
  private onGoodbye(): void {
    this.report({ op: 'worker-status-change', status: 'closing', stimulusId: 'close-stream' });
    this.closeChannel();
  }

  private closeChannel(): void {
    inBackground(this.channel.close(), (failed) => this.channel.abort(failed));
  }

  private takeOther(op: string, message: Fields): void {
    if (op === 'task-erred') this.onErred(message);
    else if (op === 'long-running') this.onLongRunning(message);
    else if (op === 'steal-response') this.onStealResponse(message);
    else if (op === 'log-event') this.onLogEvent(message);
    else {
      const report = simpleReport(message, this.host.keys);
      if (report !== undefined) this.report(report);
      else this.host.operations.workerOp(op, message, this, this.host);
    }
  }

  private onLogEvent(message: Fields): void {
    const { topic, msg } = message;
    const topics = typeof topic === 'string' ? [topic] : (asList(topic) ?? []).map(String);
    const addressed = isFields(msg) ? { ...msg, worker: this.address } : msg;
    this.report({ op: 'log-event', stimulusId: stimulusOf(message), topics, message: addressed });
  }

  private runIdOf(message: Fields, key: string): number {
    return numberIn(message, 'run_id') ?? this.runIds.get(key) ?? -1;
  }

  private report(report: WorkerReport): void {
    this.channel.send(report);
  }

  // ---- to the worker --------------------------------------------------------------------------

  private tell(message: ToWorkerMessage): void {
    const { dialect, host } = this;
    if (message.op === 'compute-task') this.assign(message);
    else if (message.op === 'steal-request') this.askBack(message);
    else if (message.op === 'close' && message.restart === true) this.restart(message.reason);
    else {
      if (message.op === 'free-keys') for (const key of message.keys) this.forgetRun(key);
      const translated = toWorker(message, dialect, host.keys, host.relay);
      if (translated !== undefined) this.comm.send(translated);
    }
  }

  private assign(message: ComputeTask): void {
    const { dialect, host, comm } = this;
    const { key, runId, dependencies } = message;
    let { runSpec } = message;
    if (!isPythonTask(runSpec)) {
      try {
        runSpec = this.specOf(key, runSpec);
      } catch (thrown) {
        this.reportFailure(key, runId, thrown);
        return;
      }
    }
    this.runIds.set(key, runId);
    const foreign = dependencies.keys.filter((_, index) => {
      return host.relay.isForeign(dependencies.whoHas[index] ?? []);
    });
    if (foreign.length > 0) host.relay.expect(this, key, runId, foreign);
    comm.send(computeTask({ ...message, runSpec }, dialect, host.keys, host.relay));
  }

  /**
   * The run specification of a task that a Node client has submitted.
   * @throws YardmasterError when it is not a Python task, or cannot be expressed in Python
   */
  private specOf(key: string, runSpec: unknown): unknown {
    const call = pythonCallOf(runSpec);
    if (call !== undefined) return pythonRunSpec(key, call, this.dialect, this.host.keys);
    throw new YardmasterError(
      'ERR_TASK',
      `${key} is not a task of Python, and ${this.address} is a worker of Dask. ` +
        'Restrict it to workers of its language, or start such a worker.',
      { key, worker: this.address },
    );
  }

  /** An input of the task cannot come. The worker forgets the task, and with it the input. */
  failTask(key: string, runId: number, error: YardmasterError): void {
    this.forgetRun(key);
    const keys = [this.host.keys.wireOf(key)];
    this.comm.send({ op: 'free-keys', keys, stimulus_id: 'not-portable' });
    this.reportFailure(key, runId, error);
  }

  private reportFailure(key: string, runId: number, thrown: unknown): void {
    const exception = toErrorPayload(thrown);
    const exceptionText = `${exception.name}: ${exception.message}`;
    const failure = { exception, traceback: undefined, exceptionText, tracebackText: '' };
    this.report({ op: 'task-erred', stimulusId: 'refused', key, runId, failure });
  }

  private forgetRun(key: string): void {
    this.runIds.delete(key);
    this.host.relay.forget(this.address, key);
  }

  private askBack({ keys, runIds, stimulusId }: StealRequest): void {
    keys.forEach((key, index) => {
      this.asked.set(key, runIds[index] as number);
      const computeTask = {
        op: 'steal-request',
        key: this.host.keys.wireOf(key),
        stimulus_id: stimulusId,
      };
      this.comm.send(computeTask);
    });
  }

  /** A nanny starts a new process in its place; without one it closes. */
  private restart(reason: string): void {
    if (this.nanny === undefined) this.comm.send({ op: 'close', reason });
    else this.host.killThroughNanny(this.nanny, reason);
  }
}

function refuse(comm: Comm, host: BridgeHost, message: string): void {
  host.log.warn({ peer: comm.peerAddress }, message);
  comm.write({ status: 'error', message, time: host.nowS() });
  inBackground(comm.close(), (failed) => comm.abort(failed));
}

/** The nannies that are between their registration and the start of their worker. */
export class NannyStarts {
  private readonly starting = new Set<Comm>();
  private readonly waiters = new Waiters();

  /**
   * Called when a nanny has registered. The nanny reports on the same connection how the start of
   * its worker went.
   */
  begin(comm: Comm): void {
    this.starting.add(comm);
    const ended = comm.closed.then(() => this.end(comm));
    inBackground(ended, 'the end of the connection of a nanny could not be followed');
  }

  /** Called when the nanny has reported, or its connection has ended. */
  end(comm: Comm): void {
    if (!this.starting.delete(comm) || this.starting.size > 0) return;
    this.waiters.release();
  }

  /** Resolves when there is none. */
  over(): Promise<void> {
    if (this.starting.size === 0) return Promise.resolve();
    return this.waiters.wait();
  }
}

/** Dask's value. */
const INTERVAL_MS = 2;
const BACKLOG_INTERVAL_MS = 10;
/** Queued tasks for each thread that keep workers busy for so long. */
const BACKLOG_TASKS = 10;

/**
 * Upper bound of the delay of messages to a client while there are many of them. A message by itself
 * costs scheduler and client far more than one among others; and while many tasks are queued, no worker
 * waits for what the client does with a result.
 */
export function batchIntervalMs({
  queued,
  totalThreads,
}: {
  readonly queued: Pick<ClusterView['queued'], 'size'>;
  readonly totalThreads: number;
}): number {
  return queued.size > BACKLOG_TASKS * totalThreads ? BACKLOG_INTERVAL_MS : INTERVAL_MS;
}
