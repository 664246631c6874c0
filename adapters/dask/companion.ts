import { fileURLToPath } from 'node:url';
import {
  type Clock,
  every,
  type Logger,
  type Timer,
  YardmasterError,
} from '../../core/api/index.ts';
import { TurnEnd } from '../../core/shared/turn.ts';
import { asList, type Fields, isFields, omit } from './wire/codec.ts';
import type {
  ClientOp,
  DaskClient,
  DaskContext,
  DaskExtension,
  DaskWorker,
  RpcHandler,
  WorkerOp,
} from './context.ts';
import type { PythonCommand, UploadedFile } from './graph/index.ts';
import { HelperProcess } from './graph/python-helper.ts';
import type { DaskOptions } from './options.ts';
import { clusterState, dumpToUrl, needsFsspec } from './cluster.ts';
import { type AddedOperations, type Operations, requireClient } from './operations.ts';
import { PythonError, PythonException, uncaughtAnswer } from './wire/py-errors.ts';
import { stateQueries } from './state-queries.ts';
import { EventFeed } from './views.ts';

export { makeTallies, Tallies } from './tallies.ts';

/** The time that plugins have for their `before_close` and `close`, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/** Time between two warnings that Python is still preloading, in milliseconds. */
const PRELOAD_NOTE_MS = 10_000;

/** Levels of Python's `logging`. */
const WARNING = 30;
const ERROR = 40;

/** Handlers do not get a connection: those that need one answer with an error. */
const NO_COMM = undefined as never;

/** The services of the scheduler that the companion uses. */
export interface CompanionHost extends DaskContext {
  readonly operations: Operations;
  readonly options: DaskContext['options'] &
    Pick<
      DaskOptions,
      'schedulerPython' | 'preload' | 'preloadArgv' | 'blockedHandlers' | 'schedulerFile'
    >;
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
  private readonly queries: ReadonlyMap<string, RpcHandler>;

  constructor(private readonly host: CompanionHost) {
    this.feed = new EventFeed({
      context: host,
      isWanted: (hook) => this.wanted.has(hook),
      send: (event) => this.process?.addEvent(event),
    });
    this.queries = new Map(Object.entries(stateQueries(host)));
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
    return process.request(op, omit(fields, 'serializers'));
  }

  request(op: string): RpcHandler | undefined {
    if (!this.handlers.has(op)) return undefined;
    return (fields) => this.ask('handle', { handler: op, fields: omit(fields, 'serializers') }, op);
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
    this.process?.pass(handler, omit(message, 'op'));
  }

  private started(): Promise<CompanionProcess> {
    if (this.starting !== undefined) return this.starting;
    const starting = this.start().catch((error: unknown) => {
      if (this.starting === starting) this.starting = undefined;
      throw error;
    });
    this.starting = starting;
    return starting;
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
      ended: (reason) => {
        if (this.process === process) this.onEnded(reason);
      },
    });
    this.process = process;
    try {
      await this.configure(process, folder);
    } catch (error) {
      process.kill(
        new YardmasterError('ERR_CLOSED', `it did not start: ${(error as Error).message}`),
      );
      throw error;
    }
    return process;
  }

  private async configure(process: CompanionProcess, folder: string): Promise<void> {
    const { host } = this;
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
    const query = this.queries.get(op);
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
        const { url, format, exclude, ...options } = omit(request, 'serializers');
        requireClient(host, comm, 'dump_cluster_state');
        if (!needsFsspec(url)) return dumpToUrl(request, host, clusterState);
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

/** Raises in the client what Python raised over a file. */
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

function textsOf(list: unknown): string[] {
  return (asList(list) ?? []).map(String);
}

// The Python process beside the scheduler: requests to it, and what it asks in turn.

/** A folder that Python can run. It stands beside this module, in the sources as in the package. */
const PROGRAM = fileURLToPath(new URL('./yardmaster_companion', import.meta.url));

/** The services that the process uses. */
interface CompanionPort {
  readonly clock: Clock;
  readonly log: Logger;
  /** Answers a request of Python. It may throw, or answer later. */
  answer(op: string, fields: Fields): unknown;
  /** See {@link Outbox}. */
  holdPeers(isHeld: boolean): void;
  /** It is gone, whatever the reason. Called once. */
  ended(reason: YardmasterError): void;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: Error) => void;
}

/** One life of the process. It starts with its construction. */
class CompanionProcess {
  private readonly process: HelperProcess;
  private readonly outbox: Outbox;
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private end: YardmasterError | undefined;

  constructor(
    command: PythonCommand,
    private readonly port: CompanionPort,
  ) {
    const { log } = port;
    this.process = new HelperProcess(
      command,
      {
        ready: (versions) => {
          log.info(
            { command, versions, pid: this.pid },
            'the Python beside the scheduler is ready',
          );
        },
        answer: (message) => this.take(message),
        line: (text) => log.info({ text }, `Python beside the scheduler: ${text}`),
        ended: (reason) => this.bury(reason),
      },
      { program: PROGRAM, name: 'the Python beside the scheduler', purpose: PURPOSE },
    );
    this.outbox = new Outbox({
      clock: port.clock,
      send: (message) => this.write(message),
      holdPeers: (isHeld) => port.holdPeers(isHeld),
      giveUp: (reason) => this.kill(reason),
    });
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  addEvent(event: CompanionEvent): void {
    this.outbox.addEvent(event);
  }

  /** A message of the stream of a peer, for a handler that a plugin has added. */
  pass(handler: string, fields: Fields): void {
    if (this.end === undefined) this.outbox.addRequest({ op: 'stream', handler, fields });
  }

  /**
   * A request, in its order with the events.
   * @throws PythonError what Python raised; YardmasterError `ERR_CLOSED`, `ERR_CONNECT`, `ERR_TIMEOUT`
   *   when the process has ended
   */
  request(op: string, fields: Fields): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.end !== undefined) {
        reject(this.end);
        return;
      }
      const id = ++this.count;
      this.waiting.set(id, { resolve, reject });
      this.outbox.addRequest({ ...fields, op, id });
    });
  }

  /** Ends it at once; what waits for it fails. */
  kill(reason: YardmasterError): void {
    this.process.kill();
    this.bury(reason);
  }

  private write(message: Fields): void {
    if (this.end !== undefined) return;
    try {
      this.process.send(message);
    } catch (cause) {
      this.writeParts(message, cause as Error);
    }
  }

  /**
   * Handles a message of which one part cannot be expressed in Python: a request fails, an event is
   * left out.
   */
  private writeParts(message: Fields, cause: Error): void {
    const { events, id } = message;
    if (typeof id === 'number') {
      this.waiting.get(id)?.reject(cause);
      this.waiting.delete(id);
      return;
    }
    const list = Array.isArray(events) ? (events as readonly CompanionEvent[]) : [];
    if (list.length > 1) {
      for (const event of list) this.write({ op: 'events', events: [event] });
      return;
    }
    const [name] = list[0] ?? [String(message['op'])];
    const text = `the event ${name} cannot be passed to plugins in Python: ${cause.message}`;
    this.port.log.warn({ err: cause, event: name }, text);
    this.outbox.handled(list.length);
  }

  private take(message: Fields): void {
    const { acknowledged, ask, id } = message;
    if (typeof acknowledged === 'number') this.outbox.handled(acknowledged);
    else if (ask !== undefined) this.answer(ask, message);
    else if (typeof id === 'number') {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      const { error, result } = message;
      if (isFields(error)) waiting?.reject(new PythonError(textOf(error), error));
      else waiting?.resolve(result ?? null);
    }
  }

  private answer(ask: unknown, { op, fields }: Fields): void {
    const reply = (value: unknown): void => {
      if (ask === null || this.end !== undefined) return;
      try {
        this.process.send({ answer: ask, value: value ?? null });
      } catch (error) {
        fail(error);
      }
    };
    const fail = (error: unknown): void => {
      if (ask !== null) this.process.send({ answer: ask, error: uncaughtAnswer(error) });
      else this.port.log.warn({ err: error, op }, `${String(op)} for Python failed`);
    };
    try {
      const answered = this.port.answer(String(op), isFields(fields) ? fields : {});
      if (answered instanceof Promise) answered.then(reply, fail);
      else reply(answered);
    } catch (error) {
      fail(error);
    }
  }

  private bury(reason: YardmasterError): void {
    if (this.end !== undefined) return;
    this.end = reason;
    this.outbox.close();
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waiting) reject(reason);
    this.port.ended(reason);
  }
}

const PURPOSE = 'run_on_scheduler, plugins of the scheduler and performance_report need';

function textOf(error: Fields): string {
  const { exception_text: text } = error;
  return typeof text === 'string' ? text : 'an exception in Python';
}

/** An event for the hooks of scheduler plugins: its name, then what the hook needs. */
export type CompanionEvent = readonly [name: string, ...fields: unknown[]];

/** The services that the outbox uses. */
interface OutboxPort {
  readonly clock: Clock;
  /** Writes one message to the process. */
  send(message: Fields): void;
  /** Stops, or starts again, the reading from those peers that cause events. */
  holdPeers(isHeld: boolean): void;
  /** The process is of no more use. */
  giveUp(reason: YardmasterError): void;
}

interface OutboxLimits {
  /** Events that the process may have without having handled them. */
  readonly window: number;
  /** Number of waiting events at which peers are paused; they resume at half of it. */
  readonly holdAt: number;
  /** Waiting events at which the process is given up: some peers cannot be held. */
  readonly max: number;
  /** The time for which the process may handle no event while peers are held, in milliseconds. */
  readonly stallMs: number;
}

const LIMITS: OutboxLimits = { window: 1024, holdAt: 50_000, max: 500_000, stallMs: 60_000 };

/** Events of one message. */
const BATCH_MAX = 256;
/** Handled entries are cut off when there are this many. */
const CUT_AT = 4096;

/**
 * Events and requests for the companion, in the order in which they happened. At most `window` events
 * are in the process; the others wait here, and when too many wait, the peers that cause them do.
 */
export class Outbox {
  private entries: (CompanionEvent | Fields)[] = [];
  /** Entries before it have been sent. */
  private next = 0;
  private unhandled = 0;
  private isPlanned = false;
  private isHolding = false;
  private isClosed = false;
  private stallTimer: Timer | undefined;
  private readonly turnEnd = new TurnEnd();

  constructor(
    private readonly port: OutboxPort,
    private readonly limits: OutboxLimits = LIMITS,
  ) {}

  /** Entries that have not been sent. */
  get waiting(): number {
    return this.entries.length - this.next;
  }

  addEvent(event: CompanionEvent): void {
    if (this.isClosed) return;
    this.entries.push(event);
    this.limit();
    if (this.isPlanned) return;
    this.isPlanned = true;
    this.turnEnd.add(() => {
      this.isPlanned = false;
      this.flush();
    });
  }

  /** A request, behind all events that were added before. */
  addRequest(message: Fields): void {
    this.entries.push(message);
    this.flush();
  }

  /** The process has handled this many events. */
  handled(count: number): void {
    this.unhandled -= count;
    this.flush();
    this.limit();
    if (this.isHolding) this.watchStall();
  }

  close(): void {
    this.isClosed = true;
    this.entries = [];
    this.next = 0;
    this.hold(false);
  }

  private flush(): void {
    while (this.next < this.entries.length) {
      const entry = this.entries[this.next] as CompanionEvent | Fields;
      if (!isEvent(entry)) {
        this.next++;
        this.port.send(entry);
        continue;
      }
      const free = Math.min(BATCH_MAX, this.limits.window - this.unhandled);
      if (free <= 0) break;
      const events = this.takeEvents(free);
      this.unhandled += events.length;
      this.port.send({ op: 'events', events });
    }
    if (this.next < CUT_AT && this.next < this.entries.length) return;
    this.entries = this.entries.slice(this.next);
    this.next = 0;
  }

  private takeEvents(max: number): CompanionEvent[] {
    const events: CompanionEvent[] = [];
    while (events.length < max) {
      const entry = this.entries[this.next];
      if (entry === undefined || !isEvent(entry)) break;
      events.push(entry);
      this.next++;
    }
    return events;
  }

  private limit(): void {
    const { waiting, limits } = this;
    if (waiting >= limits.max) {
      this.port.giveUp(
        new YardmasterError(
          'ERR_TIMEOUT',
          `the plugins in Python fell behind: ${waiting} events wait for them`,
          { waiting },
        ),
      );
    } else if (waiting >= limits.holdAt) this.hold(true);
    else if (waiting <= limits.holdAt / 2) this.hold(false);
  }

  private hold(isHeld: boolean): void {
    if (this.isHolding === isHeld) return;
    this.isHolding = isHeld;
    this.port.holdPeers(isHeld);
    if (isHeld) this.watchStall();
    else this.stallTimer?.cancel();
  }

  private watchStall(): void {
    const { clock } = this.port;
    const { stallMs } = this.limits;
    this.stallTimer?.cancel();
    this.stallTimer = clock.setTimer(stallMs, () => {
      const message = `the plugins in Python have handled no event for ${stallMs / 1000} s`;
      this.port.giveUp(new YardmasterError('ERR_TIMEOUT', message, { stallMs }));
    });
  }
}

function isEvent(entry: CompanionEvent | Fields): entry is CompanionEvent {
  return Array.isArray(entry);
}
