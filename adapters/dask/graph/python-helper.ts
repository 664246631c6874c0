import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Clock, type Logger, type Timer, YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { decodeMessage, encodeMessage, isFields } from '../wire/codec.ts';
import { FrameReader, packFrames } from '../wire/frames.ts';

// Asks a Python process, which is started when it is needed and replaced when it dies.

/** A program and arguments for it. */
export type PythonCommand = readonly [string, ...string[]];

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
  /** Bytes that the first process may keep while it has nothing to do. Default 256 MiB. */
  readonly idleMemoryBytes?: number;
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
class PythonHelper {
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

  /** The versions of the packages in the process; empty before it is ready. */
  versions: Readonly<Record<string, unknown>> = {};

  /** The Python that has served; undefined before one has. */
  get command(): PythonCommand | undefined {
    return this.isReady ? this.candidates[0] : undefined;
  }

  /** Of the running process, if there is one. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** True while something that it was asked is not answered. */
  get isAsked(): boolean {
    return this.requests.length > 0;
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
        message: { id, ...message },
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

  /** Puts a fresh process in the place of one that has nothing to do. Returns whether it did. */
  renew(): boolean {
    const { process } = this;
    if (this.isClosed || process === undefined || this.isAsked) return false;
    this.process = undefined;
    process.kill();
    this.start();
    return true;
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

  /** True when another Python is tried because this one has not what the clients have. */
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
    if (isFields(error)) {
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

  /** True when the request on which the process died is tried once more. */
  private retry(reason: YardmasterError): boolean {
    const [request] = this.requests;
    if (request === undefined || request.hasKilled || reason.code === 'ERR_TIMEOUT') return false;
    request.hasKilled = true;
    const text = `${reason.message}; the graph is tried once more in a fresh process`;
    this.options.log.warn({ err: reason }, text);
    this.restart();
    return true;
  }

  /** Begins anew an answer that was given in part. */
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

/** The time for which a request waits for a process that is busy before another one is started, in milliseconds. */
const PATIENCE_MS = 200;
/** A process has nothing to do when it was not asked for this long, in milliseconds. */
const IDLE_MS = 60_000;

/** Array graphs need a third of this, data frames two thirds; machine learning may need three times as much. */
const IDLE_MEMORY_BYTES = 256 * 2 ** 20;

/** Processes that may read at the same time unless the options say otherwise. */
const PROCESSES_MAX = 4;

type Message = Readonly<Record<string, unknown>>;

interface QueuedRequest {
  readonly message: Message;
  readonly resolve: (answers: readonly HelperAnswer[]) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Several Python processes that read graphs: each reads one at a time, so that a graph which takes long
 * delays at most those that find all processes busy. The others end when they have nothing to do; the
 * first is then replaced by a fresh process, if it has grown.
 */
export class HelperPool {
  private readonly first: PythonHelper;
  private readonly others = new Set<PythonHelper>();
  private readonly idle = new Map<PythonHelper, Timer>();
  private readonly busy = new Set<PythonHelper>();
  private readonly waiting: QueuedRequest[] = [];
  private patience: Timer | undefined;
  private isClosed = false;

  constructor(private readonly options: HelperOptions) {
    this.first = new PythonHelper(options);
  }

  get versions(): Message {
    return this.first.versions;
  }

  /** Process id of the first. */
  get pid(): number | undefined {
    return this.first.pid;
  }

  get size(): number {
    return this.others.size + 1;
  }

  /** As {@link PythonHelper.prepare}, for the first. */
  prepare(version?: string): void {
    this.first.prepare(version);
  }

  /**
   * Asks a process that is free, or the next that becomes so.
   * @throws YardmasterError as {@link PythonHelper.ask}
   */
  ask(message: Message): Promise<readonly HelperAnswer[]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ message, resolve, reject });
      this.assign();
    });
  }

  /**
   * Asks every process that is running. Those that start later are not asked. Resolves when all have
   * answered that were free; a busy one answers before its next graph, and its failure is logged.
   */
  async askAll(message: Message): Promise<void> {
    const running = [this.first, ...this.others].filter(({ pid }) => pid !== undefined);
    const answers: Promise<unknown>[] = [];
    for (const helper of running) {
      const answer = helper.ask(message);
      if (this.busy.has(helper)) answer.catch((error: unknown) => this.warn(message, error));
      else answers.push(answer);
    }
    await Promise.all(answers);
  }

  /**
   * The Python that reads graphs: the one that the options name, or else the one that is found.
   * @throws YardmasterError `ERR_CONNECT` when there is none
   */
  async command(): Promise<PythonCommand> {
    const [only, ...others] = this.options.commands;
    if (only !== undefined && others.length === 0) return only;
    if (this.first.command === undefined) await this.ask({ op: 'packages' });
    return this.first.command ?? (only as PythonCommand);
  }

  /** Ends all; what is not answered yet fails. */
  close(): void {
    this.isClosed = true;
    this.patience?.cancel();
    for (const timer of this.idle.values()) timer.cancel();
    for (const helper of [this.first, ...this.others]) helper.close();
    for (const { reject } of this.waiting.splice(0)) {
      reject(new YardmasterError('ERR_CLOSED', 'the scheduler closes'));
    }
  }

  private warn({ op }: Message, err: unknown): void {
    this.options.log.warn({ err, op }, `a Python that reads graphs failed at ${String(op)}`);
  }

  private assign(): void {
    for (;;) {
      const free = this.isClosed ? this.first : this.free();
      const request = free === undefined ? undefined : this.waiting.shift();
      if (free === undefined || request === undefined) break;
      inBackground(this.serve(free, request), 'a request of the Python helper was not served');
    }
    if (this.waiting.length > 0) this.waitForAnother();
    else {
      this.patience?.cancel();
      this.patience = undefined;
    }
  }

  private free(): PythonHelper | undefined {
    if (!this.busy.has(this.first)) return this.first;
    for (const helper of this.others) if (!this.busy.has(helper)) return helper;
    return undefined;
  }

  private async serve(
    helper: PythonHelper,
    { message, resolve, reject }: QueuedRequest,
  ): Promise<void> {
    this.busy.add(helper);
    this.idle.get(helper)?.cancel();
    await helper.ask(message).then(resolve, reject);
    this.busy.delete(helper);
    if (this.isClosed) return;
    this.rest(helper);
    this.assign();
  }

  private rest(helper: PythonHelper): void {
    const whenIdle = (): void => this.shrink(helper);
    this.idle.set(helper, this.options.clock.setTimer(IDLE_MS, whenIdle));
  }

  private waitForAnother(): void {
    const { clock, processesMax = PROCESSES_MAX } = this.options;
    if (this.patience !== undefined || this.size >= processesMax || this.isClosed) return;
    this.patience = clock.setTimer(PATIENCE_MS, () => {
      this.patience = undefined;
      const { command } = this.first;
      const commands = command === undefined ? this.options.commands : [command];
      this.others.add(new PythonHelper({ ...this.options, commands }));
      this.assign();
    });
  }

  private shrink(helper: PythonHelper): void {
    if (helper.isAsked) {
      this.rest(helper); // What all are asked makes none of them busy.
      return;
    }
    this.idle.delete(helper);
    if (helper === this.first) {
      inBackground(this.renewFirst(), 'the first Python helper was not replaced');
      return;
    }
    this.others.delete(helper);
    helper.close();
  }

  private async renewFirst(): Promise<void> {
    const { first } = this;
    const { log, idleMemoryBytes = IDLE_MEMORY_BYTES } = this.options;
    if (first.pid === undefined) return;
    this.busy.add(first);
    try {
      const [answer] = await first.ask({ op: 'memory' });
      const memory = Number(answer?.message['memory']);
      if (memory > idleMemoryBytes && first.renew())
        log.info({ memory, idleMemoryBytes }, 'the Python helper had grown, and was replaced');
    } finally {
      this.busy.delete(first);
      if (!this.isClosed) this.assign();
    }
  }
}

// One life of the Python process that reads graphs.

/** Stands beside this module, in the sources as in the package. */
const PROGRAM = fileURLToPath(new URL('./helper.py', import.meta.url));

/** Of what it wrote on standard error, for messages about its end. */
const LAST_WORDS_MAX = 2000;

/** Callbacks to the owner of a process. */
interface HelperEvents {
  /** The process is ready for requests. Called once. */
  ready(versions: Readonly<Record<string, unknown>>): void;
  /** @param frames - of the whole message; the blobs of an answer are at their end */
  answer(message: Readonly<Record<string, unknown>>, frames: readonly Uint8Array[]): void;
  /** A line that it, or user code in it, printed. */
  line(text: string): void;
  /** It is gone. Called once, also when it could not be started; nothing is called afterwards. */
  ended(reason: YardmasterError): void;
}

interface HelperRole {
  /** File or folder that Python runs. */
  readonly program: string;
  readonly parameters?: readonly string[];
  /** In messages. */
  readonly name: string;
  /** In messages, before "a Python with dask and distributed". */
  readonly purpose: string;
}

const GRAPH_READER: HelperRole = {
  program: PROGRAM,
  name: 'the Python helper',
  purpose: 'Graphs of clients from 2023.4 on, arrays and data frames need',
};

/** Starts with its construction. */
export class HelperProcess {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly reader: FrameReader;
  private lastWords = '';
  private isReady = false;
  private hasEnded = false;

  /** @param command - the Python to use, with its arguments */
  constructor(
    private readonly command: readonly [string, ...string[]],
    private readonly events: HelperEvents,
    private readonly role: HelperRole = GRAPH_READER,
  ) {
    const [program, ...args] = command;
    const parameters = [...args, role.program, ...(role.parameters ?? [])];
    this.child = spawn(program, parameters, { stdio: 'pipe', windowsHide: true });
    this.reader = new FrameReader((frames) => this.receive(frames));
    this.child.stdout.on('data', (chunk: Buffer) => this.read(chunk));
    this.listenToErrors();
    // An error here means that the process has died, which 'close' reports.
    this.child.stdin.on('error', () => undefined);
    this.child.once('error', (cause) => this.end(this.cannotStart(cause)));
    this.child.once('close', (code, signal) => this.end(this.died(code, signal)));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** @throws YardmasterError `ERR_NOT_SERIALISABLE` when the request cannot be written */
  send(request: unknown): void {
    for (const part of packFrames(encodeMessage(request))) this.child.stdin.write(part);
  }

  /** It ends when it has answered what it has been asked. */
  finish(): void {
    this.child.stdin.end();
  }

  /** Ends it at once, whatever it is doing. `ended` follows. */
  kill(): void {
    this.child.kill('SIGKILL');
  }

  private read(chunk: Buffer): void {
    if (this.hasEnded) return;
    try {
      this.reader.push(chunk);
    } catch (cause) {
      this.kill();
      const message = `${this.role.name} answered with something that is no message`;
      this.end(new YardmasterError('ERR_PROTOCOL', message, {}, { cause }));
    }
  }

  private receive(frames: readonly Uint8Array[]): void {
    const message = decodeMessage(frames);
    if (this.hasEnded || !isFields(message)) return;
    if (message['ready'] === true) {
      this.isReady = true;
      const { versions } = message;
      this.events.ready(isFields(versions) ? versions : {});
    } else this.events.answer(message, frames);
  }

  private listenToErrors(): void {
    const decoder = new StringDecoder('utf8');
    let line = '';
    this.child.stderr.on('data', (chunk: Buffer) => {
      const text = decoder.write(chunk);
      this.lastWords = (this.lastWords + text).slice(-LAST_WORDS_MAX);
      const lines = (line + text).split('\n');
      line = (lines.pop() ?? '').slice(-LAST_WORDS_MAX);
      if (this.hasEnded) return;
      for (const each of lines) if (each.trim() !== '') this.events.line(each);
    });
  }

  private end(reason: YardmasterError): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.events.ended(reason);
  }

  private cannotStart(cause: Error): YardmasterError {
    const { name, purpose } = this.role;
    const message = `cannot start ${name} with "${this.command.join(' ')}": ${cause.message}. ${purpose} a Python with dask and distributed, as the clients and workers have it; name it with the option "python" (--python)`;
    return new YardmasterError('ERR_CONNECT', message, { command: this.command }, { cause });
  }

  private died(code: number | null, signal: NodeJS.Signals | null): YardmasterError {
    const { name, purpose } = this.role;
    const how = signal ?? `exit code ${String(code)}`;
    const said = this.lastWords.trim();
    const words = said === '' ? '' : `; the last it said: ${said}`;
    const data = { code, signal, stderr: said };
    if (this.isReady) {
      return new YardmasterError('ERR_CLOSED', `${name} died (${how})${words}`, data);
    }
    const message = `${name} of "${this.command.join(' ')}" ended before it was ready (${how}). ${purpose} a Python with dask and distributed, as the clients and workers have them; name it with the option "python" (--python)${words}`;
    return new YardmasterError('ERR_CONNECT', message, data);
  }
}

// Which Python may help.

/** The usual names, the best first. Debian's stays reachable when another one shadows it. */
const USUAL = ['python3', '/usr/bin/python3', 'python'];

/**
 * The Pythons to try.
 * @param python - what the user names: a program, also with arguments (`uv run python`). Undefined or
 *   empty: that of the environment variable PYTHON, that of the active virtual environment, and the usual
 */
export function pythonCommands(
  python: string | undefined,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): PythonCommand[] {
  if (isNamed(python)) return [commandOf(python.trim())];
  const { PYTHON, VIRTUAL_ENV } = environment;
  const found: string[] = [];
  if (PYTHON !== undefined && PYTHON !== '') found.push(PYTHON);
  if (VIRTUAL_ENV !== undefined && VIRTUAL_ENV !== '') {
    found.push(join(VIRTUAL_ENV, process.platform === 'win32' ? 'Scripts' : 'bin', 'python'));
  }
  return [...new Set([...found, ...USUAL])].map((each) => [each]);
}

/** True when the user names the one to use. */
export function isNamed(python: string | undefined): python is string {
  return python !== undefined && python.trim() !== '';
}

/** A path may have blanks in it. */
function commandOf(python: string): PythonCommand {
  if (!/\s/.test(python) || existsSync(python)) return [python];
  const [program = python, ...args] = python.split(/\s+/);
  return [program, ...args];
}

/** Looks for the packages without importing them, which takes some milliseconds. */
const PROBE = `import importlib.util as u, sys
sys.exit(any(u.find_spec(name) is None for name in ("dask", "distributed")))`;

/** Those of the commands that are Pythons with dask and distributed. */
export async function findPythons(commands: readonly PythonCommand[]): Promise<PythonCommand[]> {
  const run = promisify(execFile);
  const found = await Promise.all(
    commands.map(async (command) => {
      const [program, ...args] = command;
      try {
        await run(program, [...args, '-c', PROBE], { timeout: 60_000, windowsHide: true });
        return [command];
      } catch {
        return [];
      }
    }),
  );
  return found.flat();
}

/** The message to an operator whose scheduler has no usable Python. */
export function nothingWorksWithout(commands: readonly PythonCommand[]): string {
  const tried = commands.map((command) => command.join(' ')).join(', ');
  return (
    `no Python with dask and distributed was found (tried: ${tried}). Without one the scheduler cannot read ` +
    'graphs of clients from 2023.4 on, nor arrays and data frames of older ones; it has no run_on_scheduler, ' +
    'plugins of the scheduler, performance_report, upload_file and P2P shuffles; name one with the option ' +
    '"python" (--python)'
  );
}

/** Bytes that a Python may use unless an option says otherwise: half of what this process may have. */
export function defaultMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  const total = totalmem();
  return Math.floor((constrained > 0 && constrained < total ? constrained : total) / 2);
}
