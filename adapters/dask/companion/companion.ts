import { every, YardmasterError } from '../../../core/api/index.ts';
import type {
  ClientOp,
  DaskClient,
  DaskContext,
  DaskExtension,
  DaskWorker,
  Fields,
  RpcHandler,
  RpcTable,
  WorkerOp,
} from '../context.ts';
import type { UploadedFile } from '../graph/index.ts';
import type { DaskOptions } from '../options.ts';
import type { AddedOperations, Operations } from '../rpc/operations.ts';
import { clusterState } from '../rpc/cluster/diagnostics.ts';
import { dumpToUrl, needsFsspec } from '../rpc/cluster/dump.ts';
import { requireClient } from '../rpc/known-peers.ts';
import { PythonError, PythonException } from '../rpc/py-errors.ts';
import { asList, isFields } from '../codec/values.ts';
import { CompanionProcess } from './companion-process.ts';
import { EventFeed } from './events.ts';
import { stateQueries } from './state-queries.ts';

/** How long plugins have for their `before_close` and `close`, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/** Time between two warnings that Python is still preloading, in milliseconds. */
const PRELOAD_NOTE_MS = 10_000;

/** Levels of Python's `logging`. */
const WARNING = 30;
const ERROR = 40;

/** Handlers do not get a connection: those that need one answer with an error. */
const NO_COMM = undefined as never;

/** What the companion needs of the scheduler. */
export interface CompanionHost extends DaskContext {
  readonly operations: Operations;
  readonly options: DaskContext['options'] &
    Pick<
      DaskOptions,
      'schedulerPython' | 'preload' | 'preloadArgv' | 'blockedHandlers' | 'schedulerFile'
    >;
  /** Where it listens. */
  readonly listenAddress: string;
  /** Stops, or starts again, the reading of what clients and workers say on their streams. */
  holdPeers(isHeld: boolean): void;
}

/**
 * Runs what Dask's clients want to run inside of the scheduler: one Python process, which is started when
 * it is first needed and lives as long as the scheduler. It is given events only while it has plugins
 * that want them. When it dies, its plugins are gone, which is logged, and the next request starts it anew.
 */
export class Companion implements AddedOperations {
  private process: CompanionProcess | undefined;
  private starting: Promise<CompanionProcess> | undefined;
  private isClosed = false;
  private wanted: ReadonlySet<string> = new Set();
  private pluginNames: readonly string[] = [];
  private handlers: ReadonlySet<string> = new Set();
  private streamHandlers: ReadonlySet<string> = new Set();
  readonly feed: EventFeed;
  private readonly queries: RpcTable;

  constructor(private readonly host: CompanionHost) {
    this.feed = new EventFeed({
      context: host,
      isWanted: (hook) => this.wanted.has(hook),
      send: (event) => this.process?.addEvent(event),
    });
    this.queries = stateQueries(host);
  }

  /** Process id, while there is one. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** @throws as `CompanionProcess.request`; PythonException when the operator does not allow it */
  async ask(op: string, fields: Fields, feature: string): Promise<unknown> {
    if (!this.host.options.schedulerPython) {
      throw new PythonException(
        'ValueError',
        `${feature} runs Python beside the scheduler, which is switched off here (option "schedulerPython", flag --no-scheduler-python)`,
      );
    }
    const process = await this.started();
    return process.request(op, without('serializers', fields));
  }

  request(op: string): RpcHandler | undefined {
    if (!this.handlers.has(op)) return undefined;
    return (fields) =>
      this.ask('handle', { handler: op, fields: without('serializers', fields) }, op);
  }

  clientOp(op: string): ClientOp | undefined {
    if (!this.streamHandlers.has(op)) return undefined;
    return (message, { id }) => this.pass(op, { ...message, client: id });
  }

  workerOp(op: string): WorkerOp | undefined {
    if (!this.streamHandlers.has(op)) return undefined;
    return (message, { address }) => this.pass(op, { ...message, worker: address });
  }

  /**
   * Starts Python now when there are modules to preload; it loads them first.
   * @throws PythonError what the import of a module raises
   */
  async preload(): Promise<void> {
    const { preload } = this.host.options;
    if (preload.length === 0) return;
    if (!this.host.options.schedulerPython) {
      throw new YardmasterError(
        'ERR_CONFIG',
        `${preload.join(', ')} cannot be preloaded: Python beside the scheduler is switched off (option "schedulerPython", flag --no-scheduler-python)`,
        { preload },
      );
    }
    const { clock, log } = this.host;
    const names = preload.join(', ');
    const startMs = clock.nowMs();
    const notes = every(clock, PRELOAD_NOTE_MS, () => {
      const seconds = Math.round((clock.nowMs() - startMs) / 1000);
      log.warn(
        { preload, seconds },
        `Python still preloads ${names} after ${seconds} s; the scheduler waits for it`,
      );
    });
    try {
      await this.started();
    } finally {
      notes.cancel();
    }
  }

  /** A file of a client is in the folder: modules of it that were imported are imported anew. */
  async upload({ filename, load }: UploadedFile): Promise<void> {
    await this.process?.request('upload', { filename, load });
  }

  /** Notifies the plugins, then ends the process. */
  async close(): Promise<void> {
    this.isClosed = true;
    const { process } = this;
    if (process === undefined) return;
    const { clock, log } = this.host;
    const closing = new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    if (this.pluginNames.length > 0 || this.host.options.preload.length > 0) {
      const timer = clock.setTimer(CLOSE_TIMEOUT_MS, () => process.kill(closing));
      await process.request('close', {}).catch((err: unknown) => {
        log.warn({ err }, 'plugins in Python could not be closed in good order');
      });
      timer.cancel();
    }
    process.kill(closing);
  }

  private pass(handler: string, message: Fields): void {
    this.process?.pass(handler, without('op', message));
  }

  private started(): Promise<CompanionProcess> {
    this.starting ??= this.start().catch((error: unknown) => {
      this.starting = undefined;
      throw error;
    });
    return this.starting;
  }

  private async start(): Promise<CompanionProcess> {
    const { host } = this;
    const { graphs, clock, log } = host;
    const [command, folder] = await Promise.all([graphs.pythonCommand(), graphs.uploads()]);
    if (this.isClosed) throw new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    const process: CompanionProcess = new CompanionProcess(command, {
      clock,
      log,
      answer: (op, fields) => this.answer(op, fields),
      holdPeers: (isHeld) => host.holdPeers(isHeld),
      ended: (reason) => this.onEnded(reason),
    });
    this.process = process;
    const { address, id, services } = host;
    await process.request('configure', {
      fields: {
        address,
        id,
        services,
        local_directory: folder,
        listen_address: host.listenAddress,
        blocked_handlers: host.options.blockedHandlers,
        scheduler_file: host.options.schedulerFile ?? null,
      },
    });
    const { preload: modules, preloadArgv: argv } = host.options;
    if (modules.length > 0) await process.request('preload', { modules, argv });
    return process;
  }

  private onEnded(reason: YardmasterError): void {
    const plugins = this.pluginNames;
    this.process = undefined;
    this.starting = undefined;
    this.wanted = new Set();
    this.handlers = new Set();
    this.streamHandlers = new Set();
    this.pluginNames = [];
    this.feed.clear();
    if (this.isClosed) return;
    const lost = plugins.length === 0 ? '' : `; its plugins are gone: ${plugins.join(', ')}`;
    this.host.log.error({ err: reason, plugins }, `${reason.message}${lost}`);
    this.host.plugin.enqueue({
      op: 'log-event',
      topics: ['scheduler-python'],
      message: { action: 'scheduler-python-ended', reason: reason.message, plugins },
    });
  }

  // ---- what Python asks --------------------------------------------------------------------------

  private answer(op: string, fields: Fields): unknown {
    const { host } = this;
    const query = this.queries[op];
    if (query !== undefined) return query(fields, host, NO_COMM);
    switch (op) {
      case 'companion.plugins':
        this.pluginNames = textsOf(fields['names']);
        this.wanted = new Set(textsOf(fields['hooks']));
        return null;
      case 'companion.handlers':
        return this.takeHandlers(fields);
      case 'companion.send':
        return this.send(fields);
      case 'companion.log':
        return this.log(fields);
      case 'companion.upload':
        return host.graphs.importFile({
          filename: String(fields['filename']),
          load: fields['load'] === true,
        });
      case 'companion.remove-worker':
        host.plugin.enqueue({
          op: 'remove-worker',
          worker: String(fields['worker']),
          expected: fields['safe'] === true,
          close: fields['close'] !== false,
        });
        return null;
      default:
        return host.operations.request(op)(fields, host, NO_COMM);
    }
  }

  /** @throws PythonException when one would take the place of what the scheduler itself does */
  private takeHandlers(fields: Fields): null {
    const rpc = textsOf(fields['rpc']);
    const stream = textsOf(fields['stream']);
    const taken = rpc.find((op) => this.host.operations.isOwnRequest(op));
    if (taken !== undefined) {
      throw new PythonException(
        'ValueError',
        `the handler ${JSON.stringify(taken)} is the scheduler's own and cannot be replaced from Python`,
      );
    }
    this.handlers = new Set(rpc);
    this.streamHandlers = new Set(stream);
    return null;
  }

  private log({ level, logger, text }: Fields): null {
    const { log } = this.host;
    const severity = Number(level);
    const entry = `Python beside the scheduler: ${String(text)}`;
    if (severity >= ERROR) log.error({ logger }, entry);
    else if (severity >= WARNING) log.warn({ logger }, entry);
    else log.info({ logger }, entry);
    return null;
  }

  private send({ client, worker, message }: Fields): null {
    const { clients, workers } = this.host;
    const peer: DaskClient | DaskWorker | undefined =
      typeof client === 'string' ? clients.get(client) : workers.get(String(worker));
    if (isFields(message)) peer?.send(message);
    return null;
  }
}

/** The companion as a part of the adapter. */
export function makeCompanion(host: CompanionHost, companion: Companion): DaskExtension {
  host.taskObservers.add(companion.feed.onReport);
  return {
    rpc: {
      run_function: async (request, _context, comm) => {
        requireClient(host, comm, 'run_on_scheduler');
        return companion.ask('run', request, 'run_on_scheduler');
      },
      register_scheduler_plugin: async (request, _context, comm) => {
        requireClient(host, comm, 'register_scheduler_plugin');
        return registerPlugin(request, host, companion);
      },
      dump_cluster_state_to_url: async (request, _context, comm) => {
        const { url, format, exclude, ...options } = without('serializers', request);
        if (!needsFsspec(url)) return dumpToUrl(request, host, clusterState);
        requireClient(host, comm, 'dump_cluster_state');
        const fields = { url, format: format ?? 'msgpack', exclude: exclude ?? [], options };
        return companion.ask('dump', fields, `dump_cluster_state to ${String(url)}`);
      },
      unregister_scheduler_plugin: ({ name }) => {
        return companion.ask('unregister', { name }, 'unregister_scheduler_plugin');
      },
    },
    hooks: companion.feed.hooks,
    restarted: () => companion.feed.restarted(),
  };
}

/** Files that clients upload are for the Pythons that read graphs, too; these need no companion. */
async function registerPlugin(
  request: Fields,
  { graphs }: CompanionHost,
  companion: Companion,
): Promise<unknown> {
  const { plugin } = request;
  if (plugin instanceof Uint8Array && Buffer.from(plugin).includes('SchedulerUploadFile')) {
    const file = await graphs.upload(plugin).catch(raise);
    if (file !== undefined) {
      await companion.upload(file);
      return null;
    }
  }
  return companion.ask('register', request, 'a plugin of the scheduler in Python');
}

/** What Python raised over a file is raised in the client. */
function raise(error: unknown): never {
  const raised = YardmasterError.is(error, 'ERR_GRAPH_INVALID') ? error.data : {};
  if (raised['exception'] === undefined) throw error;
  throw new PythonError(String(raised['exceptionText']), {
    status: 'uncaught-error',
    exception: raised['exception'],
    traceback: raised['traceback'],
    exception_text: raised['exceptionText'],
    traceback_text: raised['tracebackText'],
  });
}

function without(field: string, message: Fields): Fields {
  return Object.fromEntries(Object.entries(message).filter(([name]) => name !== field));
}

function textsOf(list: unknown): string[] {
  return (asList(list) ?? []).map(String);
}
