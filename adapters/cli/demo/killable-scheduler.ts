import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { YardmasterError } from '../../../core/api/index.ts';

/** Characters of the error stream that are kept for the message about a process that failed. */
const STDERR_KEPT = 4000;
const END_MS = 10_000;

/** What was done to a scheduler. */
export interface SchedulerKill {
  readonly pid: number;
  readonly newPid: number;
  /** Milliseconds from the end of the one process until the next one listened. */
  readonly awayMs: number;
}

/** A scheduler with a journal in a process of its own, which is killed and started again at its address. */
export class KillableScheduler {
  /** Rejects when a process ends that was not asked to. */
  readonly failed: Promise<never>;
  private child: ChildProcess | undefined;
  private expected: ChildProcess | undefined;
  private fail!: (error: Error) => void;
  private stderr = '';
  private url = '';
  private isClosing = false;

  private starts = 0;

  /** @param args - of the start with this number, from 0 */
  private constructor(private readonly args: (start: number) => readonly string[]) {
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => undefined); // It is a part of what the work is awaited with.
  }

  /** @throws YardmasterError `ERR_CONNECT` when it ends before it listens */
  static async start(args: (start: number) => readonly string[]): Promise<KillableScheduler> {
    const scheduler = new KillableScheduler(args);
    scheduler.url = await scheduler.listen(['--port', '0']);
    return scheduler;
  }

  get address(): string {
    return this.url;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  /**
   * Ends it as a crash would, and starts it again at once.
   * @throws YardmasterError `ERR_CLOSED` when it is closed meanwhile
   */
  async kill(): Promise<SchedulerKill> {
    const { pid } = this;
    await this.end('SIGKILL');
    if (this.isClosing) throw closedError();
    const startMs = performance.now();
    await this.listen(['--port', new URL(this.url).port]);
    return { pid, newPid: this.pid, awayMs: performance.now() - startMs };
  }

  /** Ends it in good order. */
  close(): Promise<void> {
    this.isClosing = true;
    return this.end('SIGTERM');
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    if (child?.exitCode !== null || child.signalCode !== null) return; // It has ended, or was never started.
    this.expected = child;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await closed;
    clearTimeout(timer);
  }

  /** Resolves with the address when it is printed. */
  private listen(where: readonly string[]): Promise<string> {
    const program = createRequire(import.meta.url).resolve('#cli');
    const args = [program, 'scheduler', ...this.args(this.starts++), ...where];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    const endWithUs = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithUs);
    this.stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-STDERR_KEPT);
    });
    return new Promise((resolve, reject) => {
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
        if (printed.includes('\n')) resolve(printed.slice(0, printed.indexOf('\n')));
      });
      child.once('error', reject);
      child.once('close', (code) => {
        process.off('exit', endWithUs);
        if (this.expected === child) {
          reject(closedError()); // It may have been closed before it listened.
          return;
        }
        const message = `the scheduler ended by itself (exit code ${String(code)}): ${this.stderr}`;
        const error = new YardmasterError('ERR_CONNECT', message, { exitCode: code });
        reject(error);
        this.fail(error);
      });
    });
  }
}

function closedError(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler was closed before it listened again');
}
