import process from 'node:process';

const US_PER_MS = 1000;

/** Milliseconds of CPU that this process spends on some work. In contrast to time, other work of the machine does not count. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / US_PER_MS;
}
