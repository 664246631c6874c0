/** A scheduler of this process with a dashboard, and processes that give it work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import type { RunningScheduler } from '../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../kit/start-scheduler.ts';

/** What runs, and how to end it. */
export interface LoadedScheduler {
  readonly running: RunningScheduler;
  /** `http://127.0.0.1:PORT` */
  readonly at: string;
  /** A client that submits tasks; see `paced-client.ts`. */
  client(rate: number, tasks: number, what: 'keep' | 'drop'): ChildProcess;
  close(): Promise<void>;
}

/** Starts a scheduler with workers that compute nothing, in a process of their own. */
export async function startLoaded(
  workers: number,
  dashboard: Readonly<Record<string, unknown>> = {},
): Promise<LoadedScheduler> {
  const plugins = [{ use: 'dashboard', options: { port: 0, ...dashboard } }];
  const running = await startScheduler({ config: { scheduler: { plugins } } }, 'tcp://127.0.0.1:0');
  const { address, scheduler } = running;
  const children = [self('zero', 'map', '1', String(workers), '--only-workers', address)];
  while (scheduler.cluster.workers.size < workers) await pause(20);
  return {
    running,
    at: new URL(String(scheduler.command('dashboard.url'))).origin,
    client: (rate, tasks, what) => {
      const child = self('paced-client', address, String(rate), String(tasks), what);
      children.push(child);
      return child;
    },
    close: async () => {
      await running.close();
      for (const child of children) child.kill();
    },
  };
}

/** A script of this folder, whose output is read. */
export function self(name: string, ...args: readonly string[]): ChildProcess {
  const path = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  return spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** What a process of ours prints first, which is JSON. */
export async function answerOf<T>(child: ChildProcess): Promise<T> {
  const { stdout } = child;
  if (stdout === null) throw new Error('the output of the process is not read');
  const [line] = (await once(stdout, 'data')) as [Buffer];
  return JSON.parse(line.toString()) as T;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
