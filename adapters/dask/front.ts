import { randomUUID } from 'node:crypto';

import {
  type Clock,
  type ClusterView,
  type Logger,
  YardmasterError,
  SERVICE_PREFIX,
} from '../../core/api/index.ts';
import type { Dashboard } from '../dashboard/dashboard.ts';
import { openDashboard } from '../dashboard/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { heartbeatIntervalMs } from '../../core/util/event-loop.ts';
import { Relay } from './dask-peer.ts';
import { type BridgedClient, type BridgedWorker, type BridgeHost, hostOf } from './translate.ts';
import type { Comm } from './wire/comm.ts';
import { CommPool } from './wire/comm-pool.ts';
import { Companion, type CompanionHost, makeCompanion, makeTallies, Tallies } from './companion.ts';
import type {
  DaskClient,
  DaskPlugin,
  DaskWorker,
  GraphObserver,
  MakeExtension,
  RpcTable,
  TaskObserver,
} from './context.ts';
import { defaultMemoryBytes, GraphUnpacker, type PythonCommand } from './graph/index.ts';
import { KeyTable } from './wire/key-table.ts';
import { contactAddressOf, DaskListener, refusalsTo } from './wire/listener.ts';
import { NannyStarts } from './worker-bridge.ts';
import { type TlsCredentials, withTls } from './wire/sockets.ts';
import { Operations, serveRequests } from './operations.ts';
import type { DaskOptions } from './options.ts';
import { PendingWants } from './client-bridge.ts';
import { uncaughtAnswer } from './wire/py-errors.ts';
import { makeEvents, makeFeeds, makeWatchers } from './feeds.ts';
import { makeMetadata, makeTasks } from './tasks.ts';
import { schedulerIdentity } from './identity.ts';
import { SchedulerFile } from './tls-config.ts';
import { type Fields, TypeTable } from './wire/codec.ts';

/** The parts of the front; the rest of the options of the plugin, as they are. */
interface FrontOptions extends Omit<
  DaskOptions,
  'address' | 'interface' | 'python' | 'statusPort' | 'tls'
> {
  /** Of the dashboard; 0 for any, below 0 for none. */
  readonly statusPort: number;
  readonly plugin: DaskPlugin;
  readonly listenAddress: string;
  /** Pythons that may read graphs. */
  readonly pythons: readonly PythonCommand[];
  /** True when one is started before there is a client that needs it. */
  readonly startsPython: boolean;
  /** Handlers of requests. */
  readonly rpc: RpcTable;
  readonly extensions: readonly MakeExtension[];
  /** For `tls://` addresses, ours and those of workers. */
  readonly tls: TlsCredentials | undefined;
}

/** The interval at which keys without tasks are looked for. */
const SWEEP_INTERVAL_MS = 30_000;

/** A nanny that does not answer within this is left to itself. */
const KILL_TIMEOUT_MS = 10_000;

/** The scheduler as Dask's processes find it: what bridges, requests and extensions work with. */
export class Front implements BridgeHost, CompanionHost {
  readonly plugin: DaskPlugin;
  readonly keys: KeyTable;
  readonly types = new TypeTable();
  readonly tallies = new Tallies();
  readonly id = `Scheduler-${randomUUID()}`;
  services: Fields = {};
  startedS = 0;
  readonly pool: CommPool;
  readonly relay: Relay;
  readonly workers = new Map<string, BridgedWorker>();
  readonly clients = new Map<string, BridgedClient>();
  readonly workerPlugins = new Map<string, unknown>();
  readonly nannyPlugins = new Map<string, unknown>();
  /** Called with every task that ended on a worker. */
  readonly taskObservers = new Set<TaskObserver>();
  /** Called with every graph that was submitted. */
  readonly graphObservers = new Set<GraphObserver>();
  /** The operations that peers can request, and send on their streams. */
  readonly operations: Operations;
  readonly pendingWants: PendingWants;
  readonly graphs: GraphUnpacker;
  readonly nannyStarts = new NannyStarts();
  private listener: DaskListener | undefined;
  private dashboard: Dashboard | undefined;
  private schedulerFile: SchedulerFile | undefined;
  /** Python that belongs to the scheduler. */
  readonly companion: Companion;
  /** From the goodbye on; failures are then no news. */
  isClosing = false;

  constructor(readonly options: FrontOptions) {
    const { plugin } = options;
    this.plugin = plugin;
    this.keys = new KeyTable((text) => plugin.cluster.tasks.has(text));
    this.pool = new CommPool({
      clock: plugin.clock,
      timeoutMs: options.connectTimeoutMs,
      ...withTls(options.tls),
    });
    this.relay = new Relay(
      plugin,
      plugin.log,
      (address) => this.workers.has(address),
      () => this.address,
    );
    this.pendingWants = new PendingWants(this);
    this.graphs = this.makeGraphs();
    this.companion = new Companion(this);
    this.operations = new Operations(
      new Set(options.blockedHandlers),
      options.rpc,
      [
        makeTallies(this),
        makeCompanion(this, this.companion),
        makeEvents(this),
        makeFeeds(this, this.companion),
        makeMetadata(),
        makeTasks(this),
        makeWatchers(this),
        ...options.extensions.map((make) => make(this)),
      ],
      this.companion,
    );
    plugin.every(SWEEP_INTERVAL_MS, () => this.keys.sweep());
  }

  get clock(): Clock {
    return this.plugin.clock;
  }

  get log(): Logger {
    return this.plugin.log;
  }

  get cluster(): ClusterView {
    return this.plugin.cluster;
  }

  /** The address at which it listens: with port 0, on the port that was chosen. */
  get listenAddress(): string {
    return this.listener?.address ?? this.options.listenAddress;
  }

  get address(): string {
    return contactAddressOf(this.options.contactAddress, this.listenAddress);
  }

  /** Pickled plugins for a worker that registers, by name. */
  workerPluginsFor(worker: DaskWorker): ReadonlyMap<string, unknown> {
    return new Map([...this.operations.workerPluginsFor(worker), ...this.workerPlugins]);
  }

  /** @throws YardmasterError `ERR_CONNECT` when the address is taken */
  async listen(): Promise<string> {
    const { clock, log, options } = this;
    this.listener = await DaskListener.listen(
      options.listenAddress,
      {
        clock,
        onRefused: refusalsTo(log),
        backlog: options.socketBacklog,
        ...withTls(options.tls),
      },
      (comm) => {
        inBackground(serveRequests(comm, this), (error) => comm.abort(error));
      },
    );
    this.startedS = this.nowS();
    if (options.startsPython) this.graphs.start();
    else {
      inBackground(this.graphs.checkPythons(), (error) => {
        this.log.warn({ err: error }, 'it is not known which Pythons could read graphs');
      });
    }
    await this.showDashboard();
    await this.companion.preload();
    const { schedulerFile } = options;
    if (schedulerFile !== undefined) {
      this.schedulerFile = SchedulerFile.write(schedulerFile, this.id, schedulerIdentity(this));
    }
    return this.address;
  }

  /** The address that a browser opens; undefined when there is no dashboard. */
  get dashboardUrl(): string | undefined {
    return this.dashboard?.url ?? urlOfPlugin(this.plugin);
  }

  private async showDashboard(): Promise<void> {
    const { statusPort, statusHost, statusToken, tls } = this.options;
    if (statusPort < 0 || this.listener === undefined) return;
    const existing = urlOfPlugin(this.plugin);
    if (existing !== undefined) {
      this.services = { dashboard: Number(new URL(existing).port) };
      return;
    }
    try {
      this.dashboard = await openDashboard(this.plugin, {
        host: statusHost ?? hostOf(this.listener.address),
        port: statusPort,
        token: statusToken,
        certificates: tls,
      });
      this.services = { dashboard: this.dashboard.port };
    } catch (error) {
      this.log.warn({ err: error }, 'the dashboard could not be served');
    }
  }

  /** Asks workers to close. Clients see the end of their connection. */
  sayGoodbye(): void {
    this.isClosing = true;
    for (const worker of this.workers.values()) {
      worker.send({ op: 'close', reason: 'scheduler-close' });
    }
  }

  async close(): Promise<void> {
    this.isClosing = true;
    this.schedulerFile?.delete();
    await this.companion.close();
    this.operations.close();
    this.pendingWants.close();
    this.pool.close();
    this.relay.close();
    this.graphs.close();
    await this.dashboard?.close();
    await this.listener?.close();
  }

  nowS(): number {
    return this.clock.nowMs() / 1000;
  }

  /** As Dask has it: more workers report more rarely. */
  heartbeatIntervalS(): number {
    return heartbeatIntervalMs(this.cluster.workers.size) / 1000;
  }

  /** As Dask has it: ten times that of as many workers. */
  clientHeartbeatIntervalS(): number {
    return heartbeatIntervalMs(this.cluster.clients.size) / 100;
  }

  /**
   * Answers with an error that the peer raises, and ends the connection. Of a scheduler that closes it only ends: an answer
   * would be the end of a peer that comes again otherwise.
   */
  fail(comm: Comm, error: unknown): void {
    if (YardmasterError.is(error, 'ERR_CLOSED')) {
      comm.abort(error);
      return;
    }
    comm.write(uncaughtAnswer(error));
    inBackground(comm.close(), (failed) => comm.abort(failed));
  }

  addWorker(worker: BridgedWorker): void {
    this.workers.set(worker.address, worker);
    this.operations.workerJoined(worker);
    // Clients of the same version will come, and then want to see graphs read at once.
    this.graphs.prepare(worker.dialect.version);
  }

  removeWorker(worker: BridgedWorker): void {
    if (this.workers.get(worker.address) !== worker) return;
    this.workers.delete(worker.address);
    const gone = new YardmasterError('ERR_CLOSED', `the worker ${worker.address} left`, {
      worker: worker.address,
    });
    this.pool.drop(worker.address, gone);
    this.relay.dropWorker(worker.address);
  }

  forgetWorker(address: string): void {
    const worker = this.workers.get(address);
    if (worker !== undefined) this.removeWorker(worker);
  }

  addClient(client: BridgedClient): void {
    this.clients.set(client.id, client);
    this.logClient(client.id, 'add-client');
    this.graphs.prepare(client.dialect.version);
  }

  removeClient(client: BridgedClient): void {
    if (this.clients.get(client.id) !== client) return;
    this.clients.delete(client.id);
    this.logClient(client.id, 'remove-client');
    this.pendingWants.dropClient(client.id);
    this.operations.clientGone(client);
  }

  private logClient(client: string, action: 'add-client' | 'remove-client'): void {
    this.plugin.enqueue({ op: 'log-event', topics: ['all', client], message: { action, client } });
  }

  desireKeys(client: string, keys: readonly string[]): void {
    if (client.startsWith(SERVICE_PREFIX)) return;
    this.pendingWants.desire(client, keys);
  }

  /**
   * Sends wanted keys with the client's other messages, so that an earlier release is processed
   * first.
   */
  want(client: string, keys: readonly string[]): void {
    const bridge = this.clients.get(client);
    if (bridge === undefined) this.plugin.enqueue({ op: 'client-desires-keys', client, keys });
    else bridge.want(keys);
  }

  releaseKeys(client: string, keys: readonly string[]): void {
    if (client.startsWith(SERVICE_PREFIX)) return;
    this.pendingWants.release(client, keys);
    this.plugin.enqueue({ op: 'client-releases-keys', client, keys });
  }

  /** Stops, or starts again, the reading of what clients and workers say on their streams. */
  holdPeers(isHeld: boolean): void {
    for (const peer of [...this.clients.values(), ...this.workers.values()]) peer.hold(isHeld);
  }

  async graphsSettled(client?: string): Promise<void> {
    const asked = client === undefined ? [...this.clients.values()] : [this.clients.get(client)];
    await Promise.all(asked.map((bridge) => bridge?.settled() ?? Promise.resolve()));
  }

  graphSubmitted(client: DaskClient, keys: readonly string[], message: Fields): void {
    for (const observe of this.graphObservers) observe(client, keys, message);
  }

  taskDone(message: Fields, key: string, worker: DaskWorker, runId: number): void {
    const task = this.cluster.tasks.get(key);
    if (task?.processingOn?.address !== worker.address || task.runId !== runId) return; // It is late.
    for (const observe of this.taskObservers) observe(message, key, worker);
  }

  killThroughNanny(nanny: string, reason: string): void {
    const timeout = KILL_TIMEOUT_MS / 1000;
    this.pool
      .call(nanny, 'kill', { reason, timeout }, { timeoutMs: 2 * KILL_TIMEOUT_MS })
      .catch((error: unknown) => {
        this.log.warn({ err: error, nanny }, 'a nanny could not be asked to restart its worker');
      });
  }

  private makeGraphs(): GraphUnpacker {
    const { clock, log, cluster, options } = this;
    return new GraphUnpacker(
      {
        commands: options.pythons,
        timeoutMs: options.pythonTimeoutMs,
        processesMax: options.pythonProcesses,
        memoryLimitBytes: options.pythonMemoryBytes ?? defaultMemoryBytes(),
        clock,
        log,
      },
      {
        keyOf: (wire) => this.keys.textOf(wire),
        isWorkerName: (name) => {
          for (const worker of cluster.workers.values()) if (worker.name === name) return true;
          return false;
        },
      },
    );
  }
}

/** Of the plugin `dashboard`, when the configuration lists it before this one. */
function urlOfPlugin(plugin: DaskPlugin): string | undefined {
  try {
    return plugin.run('dashboard.url') as string;
  } catch (error) {
    if (YardmasterError.is(error, 'ERR_PROTOCOL')) return undefined;
    throw error;
  }
}
