import {
  type CancelledKeys,
  type Channel,
  type ChannelHandlers,
  type ClientReport,
  type Clock,
  type ClusterView,
  type TaskView,
  type Timer,
  type ToClientMessage,
  type UpdateData,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { sayHello } from '../../core/shared/channels.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { Waiters } from '../../core/util/promises.ts';
import {
  asList,
  type Dialect,
  dialectOf,
  entriesOf,
  type Fields,
  isFields,
  textIn,
  toNumber,
  type TypeTable,
  versionIn,
} from './wire/codec.ts';
import { openChannel } from './wire/comm-pool.ts';
import type { Comm } from './wire/comm.ts';
import type { PythonFailure, UnpackedGraph } from './graph/index.ts';
import type { Relay } from './dask-peer.ts';
import { checkParameters } from './parameters.ts';
import { asPythonException, failureForClient, opaqueException } from './wire/py-errors.ts';
import type { KeyTable } from './wire/key-table.ts';
import { type BridgedClient, type BridgeHost, stimulusOf } from './translate.ts';
import { batchIntervalMs } from './worker-bridge.ts';

/**
 * A Dask client as a client of the scheduler. Its messages take effect in their order, also when a graph
 * among them takes long to unpack.
 */
export class ClientBridge implements BridgedClient, ChannelHandlers {
  readonly id: string;
  readonly dialect: Dialect;
  private readonly channel: Channel;
  private isUnpacking = false;
  private isLeaving = false;
  private isOver = false;
  private readonly idleWaiters = new Waiters();

  private constructor(
    private readonly comm: Comm,
    readonly registration: Fields,
    private readonly host: BridgeHost,
  ) {
    this.id = textIn(registration, 'client');
    this.dialect = dialectOf(versionIn(registration['versions']));
    this.channel = openChannel(host.plugin, this);
  }

  /** Brings a client in. It is answered here, also when it is refused. */
  static async open(comm: Comm, request: Fields, host: BridgeHost): Promise<void> {
    const bridge = new ClientBridge(comm, request, host);
    await bridge.register();
  }

  get peerAddress(): string {
    return this.comm.peerAddress;
  }

  send(...messages: readonly Fields[]): void {
    this.comm.send(...messages);
  }

  hold(isHeld: boolean): void {
    this.comm.hold(isHeld);
  }

  /** It wants these keys, after all that it has said before. */
  want(keys: readonly string[]): void {
    this.report({ op: 'client-desires-keys', keys, stimulusId: '' });
  }

  /**
   * Resolves when no graph of this client is being unpacked or submitted, and no message waits
   * behind one.
   */
  async settled(): Promise<void> {
    if (this.isUnpacking) await this.idleWaiters.wait();
    // The answer arrives after the scheduler has processed all earlier messages.
    await this.channel.request('who-has', { keys: [] }).catch(() => undefined);
  }

  onMessage(message: WireMessage): void {
    const { host, dialect } = this;
    const typed = message as unknown as ToClientMessage;
    this.comm.batchIntervalMs = batchIntervalMs(host.cluster);
    for (const answer of toClient(typed, dialect, host.keys, host.types, host.relay)) {
      this.comm.send(answer);
    }
  }

  onRequest(method: string): unknown {
    throw new YardmasterError('ERR_PROTOCOL', `a client of Dask does not answer "${method}"`, {
      method,
    });
  }

  onClose(error?: Error): void {
    this.isOver = true;
    this.host.removeClient(this);
    if (error !== undefined) this.comm.abort(error);
    else {
      this.comm.send({ op: 'stream-closed' });
      inBackground(this.comm.close(), (failed) => this.comm.abort(failed));
    }
  }

  private async register(): Promise<void> {
    const { comm, channel, host } = this;
    const versions = { distributed: this.dialect.version };
    try {
      await sayHello(channel, 'client');
      await channel.request('register-client', { client: this.id, versions });
    } catch (error) {
      channel.abort(error as Error);
      host.fail(comm, error);
      return;
    }
    host.addClient(this);
    comm.trust();
    // The client accepts nothing else in its first batch.
    comm.write([{ op: 'stream-start' }]);
    comm.batchIntervalMs = batchIntervalMs(host.cluster);
    comm.attach({
      onMessage: (message) => {
        this.takeBatch(asList(message) ?? [message], 0);
      },
      onClose: (error) => this.onCommClosed(error),
    });
  }

  private onCommClosed(error: Error | undefined): void {
    this.isOver = true;
    if (error === undefined || this.isLeaving) this.closeChannel();
    else this.channel.abort(error);
    this.host.removeClient(this);
    this.idleWaiters.release();
  }

  /** Takes messages until one of them takes time; the others, and later ones, wait for it. */
  private takeBatch(batch: readonly unknown[], from: number): void {
    for (let index = from; index < batch.length; index++) {
      const message = batch[index];
      if (!isFields(message)) continue;
      const unpacking = this.take(message);
      if (unpacking === undefined) continue;
      this.isUnpacking = true;
      this.comm.pause();
      inBackground(
        unpacking.finally(() => {
          this.isUnpacking = false;
          this.takeBatch(batch, index + 1);
          this.goOn();
        }),
        (error) => this.comm.abort(error),
      );
      return;
    }
  }

  private goOn(): void {
    if (this.isUnpacking) return;
    this.comm.resume(); // Takes what has come meanwhile.
    if (!this.isStillUnpacking()) this.idleWaiters.release();
  }

  private isStillUnpacking(): boolean {
    return this.isUnpacking;
  }

  private take(message: Fields): Promise<void> | undefined {
    if (this.isOver) return undefined; // It has left while an earlier message was unpacked.
    const op = String(message['op']);
    try {
      checkParameters('stream', op, message);
      if (op === 'update-graph-hlg') return this.takeGraph(message);
      if (op === 'update-graph') return this.takeListing(message);
      this.takeOther(op, message);
    } catch (cause) {
      if (op.startsWith('update-graph')) this.failGraph(message, cause);
      this.host.plugin.report(
        new YardmasterError(
          'ERR_PROTOCOL',
          `the message ${op} of client ${this.id} cannot be used: ${(cause as Error).message}`,
          { op, client: this.id },
          { cause },
        ),
      );
    }
    return undefined;
  }

  /** Before 2023.4 it lists tasks, mostly none: a future that came from elsewhere makes itself known. */
  private takeListing(message: Fields): Promise<void> | undefined {
    const { tasks, dependencies = {} } = message;
    if (tasks === undefined) return this.takeGraph(message);
    if (entriesOf(tasks).length === 0) {
      this.host.desireKeys(this.id, this.host.keys.textsOf(message['keys']));
      return undefined;
    }
    const layer = { __module__: null, __name__: null, state: { dsk: tasks, dependencies } };
    return this.takeGraph({ ...message, hlg: { layers: [layer] } });
  }

  private takeGraph(message: Fields): Promise<void> | undefined {
    try {
      const unpacked = this.host.graphs.unpack(message);
      if (!(unpacked instanceof Promise)) {
        this.submit(unpacked, message);
        return undefined;
      }
      return unpacked.then(
        (graph) => this.submit(graph, message),
        (error: unknown) => this.failGraph(message, error),
      );
    } catch (error) {
      this.failGraph(message, error);
      return undefined;
    }
  }

  private submit(
    { tasks, keys, fifoTimeoutMs, submittingTask }: UnpackedGraph,
    message: Fields,
  ): void {
    this.report({
      op: 'update-graph',
      stimulusId: stimulusOf(message),
      tasks,
      keys,
      fifoTimeoutMs,
      submittingTask,
    });
    this.host.graphSubmitted(this, keys, message);
  }

  /** Fails the tasks of the graph, because clients may wait for them and they will never exist. */
  private failGraph(message: Fields, error: unknown): void {
    this.host.log.warn({ err: error, client: this.id }, 'a graph could not be unpacked');
    const { exception, traceback } = failureOf(error);
    for (const key of asList(message['keys']) ?? []) {
      this.comm.send({ op: 'task-erred', key, exception, traceback });
    }
  }

  private takeOther(op: string, message: Fields): void {
    const { host } = this;
    if (op === 'client-desires-keys') {
      const client = typeof message['client'] === 'string' ? message['client'] : this.id;
      host.desireKeys(client, host.keys.textsOf(message['keys']));
    } else if (op === 'client-releases-keys' && this.isOfAnother(message)) {
      host.releaseKeys(String(message['client']), host.keys.textsOf(message['keys']));
    } else if (op === 'heartbeat-client') this.onHeartbeat();
    else if (op === 'close-client' || op === 'close-stream') this.leave();
    else {
      const report = simpleClientReport(message, host.keys);
      if (report === undefined) host.operations.clientOp(op, message, this, host);
      else {
        if (report.op === 'client-releases-keys') host.pendingWants.release(this.id, report.keys);
        this.report(report);
      }
    }
  }

  private isOfAnother({ client }: Fields): boolean {
    return typeof client === 'string' && client !== this.id;
  }

  private onHeartbeat(): void {
    this.report({ op: 'heartbeat-client', stimulusId: '' });
    if (!this.dialect.hasClientHeartbeatAnswer) return;
    const interval = this.host.clientHeartbeatIntervalS();
    this.comm.send({ op: 'adjust-heartbeat-interval', interval });
  }

  private leave(): void {
    if (this.isLeaving) return;
    this.isLeaving = true;
    this.closeChannel();
  }

  private closeChannel(): void {
    inBackground(this.channel.close(), (failed) => this.channel.abort(failed));
  }

  /**
   * Enqueues the report behind all earlier messages of this client. Reports in the names of
   * pseudo-clients (those of queues, for example) arrive on the same stream without belonging to
   * the channel, and must not overtake.
   */
  private report(report: Exclude<ClientReport, { readonly op: 'graph-part' }>): void {
    if (this.isLeaving || this.isOver) return;
    this.host.plugin.enqueue({ client: this.id, ...report });
  }
}

/** The exception that Python raised over the graph; or the fault, as an exception of Python. */
function failureOf(error: unknown): Pick<PythonFailure, 'exception' | 'traceback'> {
  const raised = YardmasterError.is(error, 'ERR_GRAPH_INVALID') ? error.data : undefined;
  if (raised?.['exception'] === undefined) {
    return { exception: opaqueException(asPythonException(error)), traceback: null };
  }
  return { exception: raised['exception'], traceback: raised['traceback'] };
}

// Translation of the messages between Dask clients and the scheduler.

/** Translates a message to a client into messages of its stream. */
export function toClient(
  message: ToClientMessage,
  dialect: Dialect,
  keys: KeyTable,
  types: TypeTable,
  relay: Pick<Relay, 'sourcesOf'>,
): readonly Fields[] {
  switch (message.op) {
    case 'key-in-memory': {
      const type = types.pickleOf(message.type);
      return [
        {
          op: 'key-in-memory',
          key: keys.wireOf(message.key),
          workers: relay.sourcesOf(message.workers),
          type,
        },
      ];
    }
    case 'task-erred': {
      const { exception, traceback } = failureForClient(message.failure, message.blame, keys);
      return [{ op: 'task-erred', key: keys.wireOf(message.key), exception, traceback }];
    }
    case 'cancelled-keys':
    case 'data-refused':
      return cancelledKeys(message, dialect, keys);
    case 'lost-data':
    case 'task-retried':
      return [{ op: message.op, key: keys.wireOf(message.key) }];
    case 'restart':
      return [{ op: 'restart' }];
  }
}

/** As the release of the client understands it. */
function cancelledKeys(
  { keys: texts, reason, message, plugin }: Omit<CancelledKeys, 'op'>,
  dialect: Dialect,
  keys: KeyTable,
): readonly Fields[] {
  const wires = keys.wiresOf(texts);
  if (!dialect.hasCancelledKeys) return wires.map((key) => ({ op: 'cancelled-key', key }));
  if (!dialect.hasCancelReasons) return [{ op: 'cancelled-keys', keys: wires }];
  return [{ op: 'cancelled-keys', keys: wires, reason, msg: message ?? plugin ?? null }];
}

/** Reports that need only a translation. Undefined for all other messages. */
export function simpleClientReport(
  message: Fields,
  keys: KeyTable,
): Exclude<ClientReport, { readonly op: 'graph-part' }> | undefined {
  const stimulusId = stimulusOf(message);
  switch (message['op']) {
    case 'client-releases-keys':
      return { op: 'client-releases-keys', keys: keys.textsOf(message['keys']), stimulusId };
    case 'report-key':
      return { op: 'report-key', key: keys.textOf(message['key']), stimulusId };
    case 'update-data':
      return { op: 'update-data', items: dataItems(message, keys), stimulusId };
    case 'cancel-keys': {
      return {
        op: 'cancel-keys',
        keys: keys.textsOf(message['keys']),
        force: message['force'] === true,
        ...cancellationIn(message),
        stimulusId,
      };
    }
    default:
      return undefined;
  }
}

/** The reason of a client of Dask for a cancellation: `reason`, and `msg` for people. */
export function cancellationIn(request: Fields): { reason?: string; message?: string } {
  const { reason, msg } = request;
  return {
    ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    ...(typeof msg === 'string' && msg !== '' ? { message: msg } : {}),
  };
}

/** `who_has` and `nbytes`, both by key. */
export function dataItems(message: Fields, keys: KeyTable): UpdateData['items'] {
  const sizes = new Map(
    entriesOf(message['nbytes']).map(([key, size]) => [keys.textOf(key), toNumber(size) ?? -1]),
  );
  return entriesOf(message['who_has']).map(([wire, holders]) => {
    const key = keys.textOf(wire);
    const nbytes = sizes.get(key) ?? -1;
    return {
      key,
      ...(nbytes < 0 ? {} : { nbytes }),
      workers: (asList(holders) ?? []).map(String),
    };
  });
}

/** The services of the scheduler that {@link PendingWants} uses. */
interface WantScope {
  readonly cluster: ClusterView;
  readonly clock: Clock;
  /** Sends the wanted keys to the scheduler, after everything that the client has sent before. */
  want(client: string, keys: readonly string[]): void;
  /** Ends when no graph is being unpacked. */
  graphsSettled(): Promise<void>;
}

/**
 * Milliseconds for which a client may want a key that the scheduler does not know, counted from when all graphs
 * are unpacked. Futures travel between clients faster than the graphs that create their keys.
 */
const PATIENCE_MS = 10_000;

/**
 * Keys that clients want and the scheduler does not know yet. An entry ends when a graph brings the
 * key. After a time-out the client receives the message that the key does not exist.
 */
export class PendingWants {
  /** Clients by key. */
  private readonly pending = new Map<string, Set<string>>();
  private readonly timers = new Set<Timer>();

  constructor(private readonly scope: WantScope) {}

  desire(client: string, keys: readonly string[]): void {
    const { cluster } = this.scope;
    const known = keys.filter((key) => cluster.tasks.has(key));
    if (known.length > 0) this.scope.want(client, known);
    if (known.length === keys.length) return;
    const unknown = keys.filter((key) => !cluster.tasks.has(key));
    for (const key of unknown) {
      const clients = this.pending.get(key);
      if (clients === undefined) this.pending.set(key, new Set([client]));
      else clients.add(client);
    }
    this.wait(client, unknown);
  }

  release(client: string, keys: readonly string[]): void {
    if (this.pending.size === 0) return;
    for (const key of keys) this.take(key, client);
  }

  dropClient(client: string): void {
    this.release(client, [...this.pending.keys()]);
  }

  /** Called when tasks were added: clients that waited for one of these keys want it now. */
  tasksAdded(tasks: readonly TaskView[]): void {
    if (this.pending.size === 0) return;
    for (const { key } of tasks) {
      const clients = this.pending.get(key);
      if (clients === undefined) continue;
      this.pending.delete(key);
      for (const client of clients) {
        this.scope.want(client, [key]);
      }
    }
  }

  close(): void {
    for (const timer of this.timers) timer.cancel();
    this.timers.clear();
    this.pending.clear();
  }

  private wait(client: string, keys: readonly string[]): void {
    const timer = this.scope.clock.setTimer(PATIENCE_MS, () => {
      this.timers.delete(timer);
      const settled = this.scope.graphsSettled().then(() => this.giveUp(client, keys));
      inBackground(settled, () => this.giveUp(client, keys));
    });
    this.timers.add(timer);
  }

  /**
   * Passes the unknown keys on, so that the scheduler answers the client that it does not know
   * them.
   */
  private giveUp(client: string, keys: readonly string[]): void {
    const lost = keys.filter((key) => this.take(key, client));
    if (lost.length === 0) return;
    this.scope.want(client, lost);
  }

  /** Removes an entry. Returns whether it was there. */
  private take(key: string, client: string): boolean {
    const clients = this.pending.get(key);
    if (clients?.delete(client) !== true) return false;
    if (clients.size === 0) this.pending.delete(key);
    return true;
  }
}
