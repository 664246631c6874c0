/** Real processes of a test or benchmark, none of which outlives it. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CLI = createRequire(import.meta.url).resolve('#cli');
/** A process that has not ended this long after it was asked to is killed. */
const GRACE_MS = 10_000;

/** Where schedulers of this test leave their access files. */
function ownHome(): void {
  if (process.env['YARDMASTER_HOME'] !== undefined) return;
  const home = mkdtempSync(join(tmpdir(), 'yardmaster-home-'));
  process.env['YARDMASTER_HOME'] = home;
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
}

/** One process, whose output is collected. */
export class Run {
  stdout = '';
  stderr = '';
  /** Its exit code; null: a signal ended it. */
  readonly exit: Promise<number | null>;
  private hasEnded = false;
  private wakes: (() => void)[] = [];

  constructor(readonly child: ChildProcess) {
    const wake = (): void => {
      for (const resolve of this.wakes.splice(0)) resolve();
    };
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      wake();
    });
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      wake();
    });
    this.exit = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        this.hasEnded = true;
        wake();
        resolve(code);
      });
    });
  }

  /**
   * Resolves when something more was printed, or at its end.
   * @throws Error when the process had ended before, with what it complained of
   */
  async output(): Promise<void> {
    // Its last words may come in one turn with its end: the caller looks at them first.
    if (this.hasEnded) throw new Error(`it ended early: ${this.stderr}`);
    await new Promise<void>((resolve) => this.wakes.push(resolve));
  }

  /** The first line on stdout. */
  async firstLine(): Promise<string> {
    while (!this.stdout.includes('\n')) await this.output();
    return this.stdout.split('\n')[0]!;
  }

  /** Resolves when one of its streams has this: the two arrive in any order. */
  async prints(text: string): Promise<void> {
    while (!this.stdout.includes(text) && !this.stderr.includes(text)) await this.output();
  }

  /** The addresses that it prints first, on one stream after the other. */
  async addresses(count: number): Promise<readonly string[]> {
    for (;;) {
      const found = `${this.stdout}${this.stderr}`.match(/t(?:cp|ls):\/\/[\d.]+:\d+(?=\s)/g) ?? [];
      if (found.length >= count) return found.slice(0, count);
      await this.output();
    }
  }

  /** Ends it, by force when it does not listen. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), GRACE_MS);
    await this.exit.catch(() => null);
    clearTimeout(timer);
  }
}

/** What a command came to. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The process in which commands run, and those that wait for their end, in the order of their commands. */
let host: ChildProcess | undefined;
const waiting: ((ended: Ended) => void)[] = [];

function startHost(): ChildProcess {
  const started = fork(new URL('command-host.mjs', import.meta.url), { stdio: 'inherit' });
  started.on('message', (ended: Ended) => waiting.shift()?.(ended));
  // It ends with this process.
  started.unref();
  started.channel?.unref();
  return started;
}

/** The processes of one test file. */
export class Runs {
  private readonly runs = new Set<Run>();

  /** @param env - variables of all of them, besides those of this process */
  constructor(private readonly env: NodeJS.ProcessEnv = {}) {
    ownHome();
  }

  /** @param group - whether it and its children are a group of processes, which a signal to `-pid` reaches */
  start(program: string, args: readonly string[], group = false): Run {
    const run = new Run(
      spawn(program, args, {
        detached: group,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...this.env },
      }),
    );
    this.runs.add(run);
    const forget = (): void => void this.runs.delete(run);
    run.exit.then(forget, forget);
    return run;
  }

  /** Our command line. */
  yardmaster(...args: string[]): Run {
    return this.start(process.execPath, [CLI, ...args]);
  }

  /** Runs a command that ends by itself in the process that all of them share: there it takes milliseconds. */
  command(...args: string[]): Promise<Ended> {
    host ??= startHost();
    host.channel?.ref();
    host.send({ args, env: { ...process.env, ...this.env } });
    return new Promise((resolve) => {
      waiting.push((ended) => {
        if (waiting.length === 0) host?.channel?.unref();
        resolve(ended);
      });
    });
  }

  /** Our command line, as a group of processes. */
  group(...args: string[]): Run {
    return this.start(process.execPath, [CLI, ...args], true);
  }

  /** Ends all that still runs, the newest first. */
  async end(signal?: NodeJS.Signals): Promise<void> {
    for (const run of [...this.runs].reverse()) await run.end(signal);
  }
}
