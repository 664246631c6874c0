/** Memory of processes, as Linux reports it. */
import { readFileSync, writeFileSync } from 'node:fs';

const KIB = 1024;

/** Bytes that a process occupies now. */
export function residentBytes(pid: number): number {
  return field(pid, 'VmRSS');
}

/** The most bytes that a process has occupied since {@link resetPeak}, or since it began. */
export function peakBytes(pid: number): number {
  return field(pid, 'VmHWM');
}

/** Resets the peak that {@link peakBytes} returns. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function field(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status);
  if (match?.[1] === undefined) throw new Error(`the process ${pid} has no ${name}`);
  return Number(match[1]) * KIB;
}
