import {
  type Channel,
  type ChannelHandlers,
  type ClientReport,
  type ToClientMessage,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { sayHello } from '../../../core/shared/open-channel.ts';
import { inBackground } from '../../../core/shared/background.ts';
import type { Comm } from '../connection/comm.ts';
import type { Fields } from '../context.ts';
import { type Dialect, dialectOf, versionIn } from '../codec/dialect.ts';
import { batchIntervalMs } from './batch-interval.ts';
import type { BridgedClient, BridgeHost } from './bridge-host.ts';
import type { PythonFailure, UnpackedGraph } from '../graph/index.ts';
import { openChannel } from '../connection/own-channel.ts';
import { checkParameters } from '../rpc/parameters.ts';
import { asPythonException, opaqueException } from '../rpc/py-errors.ts';
import { stimulusOf } from './translate-from-worker.ts';
import { simpleClientReport, toClient } from './translate-client.ts';
import { asList, entriesOf, isFields, textIn } from '../codec/values.ts';

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
  private readonly idleWaiters: (() => void)[] = [];

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
    if (this.isUnpacking) {
      await new Promise<void>((resolve) => {
        this.idleWaiters.push(resolve);
      });
    }
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
    this.release();
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
    if (!this.isStillUnpacking()) this.release();
  }

  private isStillUnpacking(): boolean {
    return this.isUnpacking;
  }

  private release(): void {
    for (const resolve of this.idleWaiters.splice(0)) resolve();
  }

  private take(message: Fields): Promise<void> | undefined {
    const op = String(message['op']);
    try {
      checkParameters('stream', op, message);
      if (op === 'update-graph-hlg') return this.takeGraph(message);
      if (op === 'update-graph') return this.takeListing(message);
      this.takeOther(op, message);
    } catch (cause) {
      if (op.startsWith('update-graph')) this.failGraph(message, cause);
      this.host.report(
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
      ...(submittingTask === undefined ? {} : { submittingTask }),
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
        if (report.op === 'client-releases-keys') host.dropPendingWishes(this.id, report.keys);
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
    this.host.plugin.enqueue({ ...report, client: this.id });
  }
}

/** What Python raised over the graph; or what is wrong, as an exception of Python. */
function failureOf(error: unknown): Pick<PythonFailure, 'exception' | 'traceback'> {
  const raised = YardmasterError.is(error, 'ERR_GRAPH_INVALID') ? error.data : undefined;
  if (raised?.['exception'] === undefined) {
    return { exception: opaqueException(asPythonException(error)), traceback: null };
  }
  return { exception: raised['exception'], traceback: raised['traceback'] };
}
