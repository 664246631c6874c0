/** What runs on workers. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { currentTask, defineTasks } from 'yardmaster';

const TEST_PROCESS = fileURLToPath(new URL('test-process.js', import.meta.url));

export const { runFile } = defineTasks(import.meta.url, {
  /** Runs a test file in a process of its own, which talks to Vitest itself. */
  async runFile(path, { host, port, id }, { cwd, env, execArgv }) {
    const child = fork(TEST_PROCESS, [host, String(port), id], {
      cwd,
      env: { ...process.env, ...env },
      execArgv,
      killSignal: 'SIGKILL',
      signal: currentTask().signal,
    });
    const [code, signal] = await once(child, 'exit');
    if (code !== 0)
      throw new Error(`the process of ${path} ended with ${signal ?? `code ${code}`}`);
  },
});
