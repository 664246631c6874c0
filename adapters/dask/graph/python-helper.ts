/** Asks a Python process, which is started when it is needed and replaced when it dies. */
import { YardmasterError, type Clock, type Logger, type Timer } from '../../../core/api/index.ts';
import { GRAPH_READER, HelperProcess, type HelperEvents } from './helper-process.ts';
import { isRecord } from './unpacked.ts';

/** A program and arguments for it. */
export type PythonCommand = readonly [string, ...string[]];

/** What the Pythons that read graphs may use; see {@link HelperOptions}. */
export type PythonLimits = Required<
  Pick<HelperOptions, 'timeoutMs' | 'processesMax' | 'memoryLimitBytes'>
>;

/** How a helper is run. */
export interface HelperOptions {
  /**
   * Pythons that may be used, each with its arguments (`['python3']`). The helper uses the first
   * one that has the version of the clients, or else the first one that has Dask.
   */
  readonly commands: readonly PythonCommand[];
  /** Milliseconds that one request may take, the start of the process included. Infinity: any time. */
  readonly timeoutMs: number;
  /** Processes that may read at the same time. Default 4. */
  readonly processesMax?: number;
  /** Bytes that each may use. Default: any. */
  readonly memoryLimitBytes?: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One of the messages that answer a request. */
export interface HelperAnswer {
  readonly message: Readonly<Record<string, unknown>>;
  /** Further frames; Python calls them blobs. */
  readonly blobs: readonly Uint8Array[];
}

/** An exception that Python raised: opaque for the scheduler, readable for clients. */
export interface PythonFailure {
  readonly exception: unknown;
  readonly traceback: unknown;
  readonly exceptionText: string;
  readonly tracebackText: string;
}

interface Request {
  readonly id: number;
  readonly message: Readonly<Record<string, unknown>>;
  readonly answers: HelperAnswer[];
  /** A process died while it was working on this. */
  hasKilled: boolean;
  readonly resolve: (answers: readonly HelperAnswer[]) => void;
  readonly reject: (reason: YardmasterError) => void;
}

/**
 * Requests are answered one by one, in their order. When the process dies over one, it is tried once more
 * in a fresh process; when that dies, too, this one fails and the others go to the next process.
 */
export class PythonHelper {
  private process: HelperProcess | undefined;
  private isReady = false;
  private isClosed = false;
  /** The first is being answered. */
  private readonly requests: Request[] = [];
  private timer: Timer | undefined;
  private count = 0;
  /** Those that are left to try. One that served stays the first. */
  private candidates: PythonCommand[];
  /** Served, but has another version than the clients. */
  private fallback: PythonCommand | undefined;
  private readonly reasons: YardmasterError[] = [];
  private wantedVersion: string | undefined;

  constructor(private readonly options: HelperOptions) {
    this.candidates = [...options.commands];
  }

  /** What the process has; empty before it is ready. */
  versions: Readonly<Record<string, unknown>> = {};

  /** The Python that has served; undefined before one has. */
  get command(): PythonCommand | undefined {
    return this.isReady ? this.candidates[0] : undefined;
  }

  /** Of the running process, if there is one. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /**
   * Starts the process before the first request.
   * @param version - `distributed` of the client that is expected to send requests; undefined when
   *   no client has connected
   */
  prepare(version?: string): void {
    if (this.wantedVersion === undefined && version !== undefined) {
      this.wantedVersion = version;
      const [command] = this.candidates;
      if (this.isReady && command !== undefined) this.compareVersions(command, this.versions);
    }
    if (this.process === undefined && !this.isClosed) this.start();
  }

  /**
   * Asks, starting the process if there is none.
   * @returns all answers to it
   * @throws YardmasterError `ERR_GRAPH_INVALID` when Python raised an exception (its {@link
   *   PythonFailure} is the data), `ERR_CONNECT` when there is no Python, `ERR_CLOSED` when it died,
   *   `ERR_TIMEOUT`
   */
  ask(message: Readonly<Record<string, unknown>>): Promise<readonly HelperAnswer[]> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) {
        reject(new YardmasterError('ERR_CLOSED', 'the scheduler closes'));
        return;
      }
      const id = ++this.count;
      const request: Request = {
        id,
        message: { ...message, id },
        answers: [],
        hasKilled: false,
        resolve,
        reject,
      };
      this.requests.push(request);
      if (this.process === undefined) this.start();
      else if (this.isReady) this.send(this.process, request);
      if (this.requests.length === 1) this.watch();
    });
  }

  /** Ends the process; what is not answered yet fails. */
  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    const { process } = this;
    this.process = undefined;
    process?.kill();
    const requests = this.requests.splice(0);
    for (const { reject } of requests) {
      reject(new YardmasterError('ERR_CLOSED', 'the scheduler closes'));
    }
  }

  private start(): void {
    const [command] = this.candidates;
    if (command === undefined) return;
    const { log } = this.options;
    this.isReady = false;
    const { memoryLimitBytes } = this.options;
    const parameters = memoryLimitBytes === undefined ? [] : [String(memoryLimitBytes)];
    const events: HelperEvents = {
      ready: (versions) => {
        if (this.process !== process || this.passOver(process, command, versions)) return;
        this.isReady = true;
        this.versions = versions;
        this.candidates = [command];
        log.info({ command, versions, pid: process.pid }, 'the Python helper is ready');
        for (const request of [...this.requests]) this.send(process, request);
      },
      answer: (message, frames) => {
        if (this.process === process) this.take(message, frames);
      },
      line: (text) => log.warn({ text }, 'the Python helper printed'),
      ended: (reason) => {
        if (this.process === process) this.bury(reason);
      },
    };
    const process = new HelperProcess(command, events, { ...GRAPH_READER, parameters });
    this.process = process;
  }

  /** Whether another Python is tried because this one has not what the clients have. */
  private passOver(
    process: HelperProcess,
    command: PythonCommand,
    versions: Readonly<Record<string, unknown>>,
  ): boolean {
    const { wantedVersion } = this;
    if (wantedVersion === undefined || versions['distributed'] === wantedVersion) return false;
    const isLast = this.candidates.length === 1;
    if (isLast && (this.fallback ?? command) === command) {
      this.compareVersions(command, versions);
      return false;
    }
    this.fallback ??= command;
    this.candidates.shift();
    if (this.candidates.length === 0) this.candidates.push(this.fallback);
    this.process = undefined;
    process.kill();
    this.start();
    return true;
  }

  private compareVersions(
    command: PythonCommand,
    { distributed: helper }: Readonly<Record<string, unknown>>,
  ): void {
    const { wantedVersion: client } = this;
    if (helper === client) return;
    const message = 'the Python helper and the client have different versions of distributed';
    this.options.log.warn({ helper, client, command }, message);
  }

  private send(process: HelperProcess, request: Request): void {
    try {
      process.send(request.message);
    } catch (cause) {
      const message = 'the graph cannot be handed to the Python helper';
      this.drop(request);
      request.reject(new YardmasterError('ERR_GRAPH_INVALID', message, {}, { cause }));
    }
  }

  private take(message: Readonly<Record<string, unknown>>, frames: readonly Uint8Array[]): void {
    const request = this.requests.find(({ id }) => id === message['id']);
    if (request === undefined) return;
    this.watch();
    const { error, blobs, more } = message;
    if (isRecord(error)) {
      this.drop(request);
      request.reject(pythonError(error));
      return;
    }
    const count = typeof blobs === 'number' ? blobs : 0;
    request.answers.push({ message, blobs: frames.slice(frames.length - count) });
    if (more === true) return;
    this.drop(request);
    request.resolve(request.answers);
  }

  /** The process is gone: what it was working on fails, or everything if none gets ready. */
  private bury(reason: YardmasterError): void {
    const wasReady = this.isReady;
    this.process = undefined;
    this.isReady = false;
    this.timer?.cancel();
    if (!wasReady && this.tryNext(reason)) return;
    if (wasReady && this.retry(reason)) return;
    const failed = this.requests.splice(0, wasReady ? 1 : this.requests.length);
    const details = { err: reason, requests: failed.length };
    if (failed.length > 0) this.options.log.error(details, reason.message);
    else this.options.log.warn(details, reason.message);
    for (const { reject } of failed) reject(wasReady ? reason : this.allReasons(reason));
    if (!wasReady) this.startOver();
    this.restart();
  }

  /** Whether the request on which the process died is tried once more. */
  private retry(reason: YardmasterError): boolean {
    const [request] = this.requests;
    if (request === undefined || request.hasKilled || reason.code === 'ERR_TIMEOUT') return false;
    request.hasKilled = true;
    const text = `${reason.message}; the graph is tried once more in a fresh process`;
    this.options.log.warn({ err: reason }, text);
    this.restart();
    return true;
  }

  /** What was answered in part is answered anew. */
  private restart(): void {
    for (const { answers } of this.requests) answers.length = 0;
    if (this.requests.length === 0) return;
    this.start();
    this.watch();
  }

  private tryNext(reason: YardmasterError): boolean {
    this.reasons.push(reason);
    const failed = this.candidates.shift();
    const { fallback } = this;
    if (this.candidates.length === 0 && fallback !== undefined && failed !== fallback) {
      this.candidates.push(fallback);
    }
    if (this.candidates.length === 0) return false;
    this.start();
    this.watch();
    return true;
  }

  private allReasons(last: YardmasterError): YardmasterError {
    const { reasons } = this;
    if (reasons.length < 2) return last;
    const message = `none of ${reasons.length} Pythons can be used: ${reasons.map((each) => each.message).join('; ')}`;
    return new YardmasterError(last.code, message, { reasons: reasons.map(({ data }) => data) });
  }

  /**
   * Tries all commands again for the next graph, because the missing package may have been
   * installed.
   */
  private startOver(): void {
    this.candidates = [...this.options.commands];
    this.reasons.length = 0;
  }

  private drop(request: Request): void {
    const index = this.requests.indexOf(request);
    if (index >= 0) this.requests.splice(index, 1);
    this.watch();
  }

  /** The time of a request begins when those before it are answered, and again with each part. */
  private watch(): void {
    const { timeoutMs, clock } = this.options;
    this.timer?.cancel();
    if (this.requests.length === 0 || timeoutMs === Infinity) return;
    this.timer = clock.setTimer(timeoutMs, () => {
      const { process } = this;
      if (process === undefined) return;
      const message = `the Python helper did not answer within ${timeoutMs / 1000} s and was ended; "pythonTimeoutMs" allows more`;
      const data = { method: 'unpack', timeoutMs };
      // No more of its events count.
      this.isReady = true;
      this.bury(new YardmasterError('ERR_TIMEOUT', message, data));
      process.kill();
    });
  }
}

function pythonError(error: Readonly<Record<string, unknown>>): YardmasterError {
  const text = textOf(error['exception_text']);
  const failure: PythonFailure = {
    exception: error['exception'],
    traceback: error['traceback'] ?? null,
    exceptionText: text,
    tracebackText: textOf(error['traceback_text']),
  };
  const message = `Python could not read the graph: ${text}`;
  return new YardmasterError('ERR_GRAPH_INVALID', message, { ...failure });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
