/** What a program and the processes that it starts cost, as Linux says. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';

const SAMPLE_MS = 50;
const KIB = 1024;
/** Of the clock in which `/proc` counts. */
const TICK_MS = 10;

/** Of one run. */
export interface Cost {
  readonly wallMs: number;
  /** User and system, of all processes. */
  readonly cpuMs: number;
  /** The most of all processes at one time; what they share counts once. */
  readonly peakBytes: number;
  readonly output: string;
}

/**
 * Runs a program of Node to its end.
 * @param use - calls the program, which is a service and prints its address first; the time is that of the calls. The service
 *   is asked to end then. With the call of `begin` time and CPU begin anew
 */
export async function costOf(
  args: readonly string[],
  cwd: string,
  use?: (address: string, begin: () => void) => Promise<string>,
): Promise<Cost> {
  const startMs = performance.now();
  let cpuMs = endedCpuMs();
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  const { pid } = child;
  let peakBytes = 0;
  const sample = setInterval(() => {
    if (pid !== undefined) peakBytes = Math.max(peakBytes, treeBytes(pid));
  }, SAMPLE_MS);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('exit', resolve);
    child.on('error', reject);
  });
  const called = async (): Promise<Called | undefined> => {
    if (use === undefined) return undefined;
    const [address] = (await once(child.stdout, 'data')) as [Buffer];
    let usedMs = performance.now();
    const output = await use(String(address).trim(), () => {
      usedMs = performance.now();
      cpuMs += ownCpuMs(pid);
    });
    child.kill('SIGTERM');
    return { output, wallMs: performance.now() - usedMs };
  };
  try {
    const [calls, printed, code] = await Promise.all([called(), text(child.stdout), ended]);
    if (code !== 0) throw new Error(`${args.join(' ')} ended with code ${code ?? 'none'}`);
    const { output, wallMs } = calls ?? { output: printed, wallMs: performance.now() - startMs };
    return { wallMs, cpuMs: endedCpuMs() - cpuMs, peakBytes, output };
  } finally {
    clearInterval(sample);
  }
}

type Called = Pick<Cost, 'output' | 'wallMs'>;

/** Runs a program of Node, and ends it and all processes that it has started with SIGKILL. */
export async function killAfter(
  args: readonly string[],
  cwd: string,
  afterMs: number,
): Promise<void> {
  const child = spawn(process.execPath, args, { cwd, stdio: 'ignore' });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('exit', () => resolve());
    child.on('error', reject);
  });
  const timer = setTimeout(() => {
    for (const pid of child.pid === undefined ? [] : treeOf(child.pid)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
  }, afterMs);
  await ended;
  clearTimeout(timer);
}

/** A process and all that it has started, parents first, so that none is replaced. */
function treeOf(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

function childrenOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return children === '' ? [] : children.split(' ').map(Number);
  } catch {
    return []; // It has ended meanwhile.
  }
}

/** CPU of the children of this process that have ended, and of theirs. */
function endedCpuMs(): number {
  return statTicks('self', 13) * TICK_MS;
}

/** CPU of a process that runs. */
function ownCpuMs(pid = 0): number {
  return statTicks(String(pid), 11) * TICK_MS;
}

/** Two neighbours among the numbers that Linux gives of a process, user and system: their sum. */
function statTicks(process: string, field: number): number {
  const stat = readFileSync(`/proc/${process}/stat`, 'utf8');
  // The name of the program is in parentheses and may contain spaces. The fields are counted from the one after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[field]) + Number(fields[field + 1]);
}

function treeBytes(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const own = Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * KIB;
    return childrenOf(pid).reduce((sum, child) => sum + treeBytes(child), own);
  } catch {
    return 0; // it has ended meanwhile
  }
}
