import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { type Clock, YardmasterError } from '../../core/api/index.ts';
import type { ClusterWorker } from './cluster-workers.ts';

/** Bytes of the error stream that are kept for the message about a child that died. */
const STDERR_KEPT = 4000;
/** Time for a child to end after SIGTERM before it is killed. */
const TERMINATION_MS = 5000;

/** Its log is for the terminal of whoever started the cluster. */
const LOG = ['--log-format', 'text'];

/** How to start a worker process. */
export interface WorkerProcessOptions {
  readonly scheduler: string;
  readonly name: string;
  readonly threads: number;
  readonly clock: Clock;
  /** Further arguments of `yardmaster worker`. */
  readonly args?: readonly string[];
}

/** A worker in a process of its own: `yardmaster worker <address>`. */
export class WorkerProcess implements ClusterWorker {
  readonly name: string;
  /** Resolves when the process is gone, however it went. */
  readonly ended: Promise<void>;
  private readonly child: ChildProcess;
  private readonly clock: Clock;
  private stderr = '';
  /** It has printed the line that says so. */
  private hasComeUp = false;
  private end: { readonly code: number | null; readonly signal: string | null } | undefined;
  private failure: Error | undefined;

  constructor({ scheduler, name, threads, clock, args = [] }: WorkerProcessOptions) {
    this.name = name;
    this.clock = clock;
    // The compiled command, also when this file itself runs uncompiled.
    const cli = createRequire(import.meta.url).resolve('#cli');
    this.child = spawn(
      process.execPath,
      [cli, 'worker', scheduler, '--name', name, '--threads', String(threads), ...LOG, ...args],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-STDERR_KEPT);
      // What a worker that does not come up writes is told by the error alone.
      if (this.hasComeUp) process.stderr.write(text);
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => this.forward(text));
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.failure = error;
        resolve();
      });
      // Unlike `exit`, when the streams are read as well.
      this.child.once('close', (code, signal) => {
        this.end = { code, signal };
        resolve();
      });
    });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get isRunning(): boolean {
    return this.end === undefined && this.failure === undefined;
  }

  /** Why it is not there, with what it wrote to its error stream. */
  deathError(): YardmasterError {
    const how =
      this.failure !== undefined
        ? `could not be started: ${this.failure.message}`
        : typeof this.end?.signal === 'string'
          ? `was killed by ${this.end.signal}`
          : `ended with exit code ${String(this.end?.code)}`;
    const wrote = this.stderr.trim() === '' ? 'it wrote nothing' : this.stderr.trim();
    return new YardmasterError(
      'ERR_NO_WORKER',
      `the process of worker "${this.name}" ${how}; on its error stream: ${wrote}`,
      { worker: this.name, pid: this.pid, ...this.end },
      this.failure === undefined ? {} : { cause: this.failure },
    );
  }

  /** Ends it in good order, or by force when that takes too long. */
  async close(): Promise<void> {
    if (!this.isRunning) return;
    this.child.kill('SIGTERM');
    const timer = this.clock.setTimer(TERMINATION_MS, () => this.kill());
    await this.ended;
    timer.cancel();
  }

  /** What tasks print is for the terminal of whoever started the cluster. */
  private forward(text: string): void {
    const from = this.hasComeUp ? 0 : text.indexOf('\n') + 1;
    this.hasComeUp ||= from > 0;
    if (this.hasComeUp && text.length > from) process.stdout.write(text.slice(from));
  }

  /** Ends it at once, as a crash would. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}
