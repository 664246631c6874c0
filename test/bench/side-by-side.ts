/** Shared by benchmarks that run in separate processes, in turn with those of the peer. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** One result, which becomes a line of JSON. */
export type Result = Readonly<Record<string, unknown>>;

/** Where a script of the peer is. Python sources are not compiled: they stay where they were written. */
export function pythonScript(name: string): string {
  return fileURLToPath(new URL(`../../../test/bench/${name}`, import.meta.url));
}

/** Runs a program to its end. Returns what the last line says that it prints. */
export function run(command: string, args: readonly string[]): Result {
  const output = execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 24 });
  const line = output.trim().split('\n').at(-1) ?? '';
  return JSON.parse(line) as Result;
}

/** The result in the middle, by one of its fields. */
export function median(results: readonly Result[], field: string): Result {
  const sorted = results.toSorted((a, b) => Number(a[field]) - Number(b[field]));
  return sorted[Math.floor(sorted.length / 2)] as Result;
}

export function print(line: Result): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** To hundredths. */
export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
