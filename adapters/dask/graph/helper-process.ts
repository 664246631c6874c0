/** One life of the Python process that reads graphs. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { fileURLToPath } from 'node:url';

import { YardmasterError } from '../../../core/api/index.ts';
import { decodeMessage, encodeMessage } from '../codec/index.ts';
import { FrameReader, packFrames } from '../connection/frames.ts';
import { isRecord } from './unpacked.ts';

/** Stands beside this module, in the sources as in the package. */
const PROGRAM = fileURLToPath(new URL('./helper.py', import.meta.url));

/** Of what it wrote on standard error, for messages about its end. */
const LAST_WORDS_MAX = 2000;

/** Callbacks to the owner of a process. */
export interface HelperEvents {
  /** The process is ready for requests. Called once. */
  ready(versions: Readonly<Record<string, unknown>>): void;
  /** @param frames - of the whole message; the blobs of an answer are at their end */
  answer(message: Readonly<Record<string, unknown>>, frames: readonly Uint8Array[]): void;
  /** A line that it, or user code in it, printed. */
  line(text: string): void;
  /** It is gone. Called once, also when it could not be started; nothing is called afterwards. */
  ended(reason: YardmasterError): void;
}

/** What a process is for. */
interface HelperRole {
  /** File or folder that Python runs. */
  readonly program: string;
  readonly parameters?: readonly string[];
  /** In messages. */
  readonly name: string;
  /** In messages, before "a Python with dask and distributed". */
  readonly purpose: string;
}

/** Reads graphs. */
export const GRAPH_READER: HelperRole = {
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
    if (this.hasEnded || !isRecord(message)) return;
    if (message['ready'] === true) {
      this.isReady = true;
      const { versions } = message;
      this.events.ready(isRecord(versions) ? versions : {});
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
