import { Client } from '../../adapters/client/index.ts';
import { Runs } from '../kit/runs.ts';
import { attack, type Attacker, residentBytes } from './attack.ts';

const ATTACKERS: readonly Attacker[] = ['stranger', 'client', 'worker'];
const FRAMES_OF_ROUND = 2000;
const MIB = 1024 * 1024;

/** Attacks a scheduler for as long, and prints figures. */
export async function attackFor(minutes: number): Promise<void> {
  const runs = new Runs();
  try {
    const scheduler = runs.yardmaster(
      'scheduler',
      '--port',
      '0',
      '--insecure',
      '--log-level',
      'silent',
    );
    const address = await scheduler.firstLine();
    await runs.yardmaster('worker', address, '--threads', '1', '--no-nanny').firstLine();
    const client = await Client.connect(address);
    const idle = residentBytes(scheduler.child.pid!);
    const endMs = performance.now() + minutes * 60_000;
    const total = { frames: 0, connections: 0, blockedMs: 0, peak: idle };
    for (let seed = 1; performance.now() < endMs; seed++) {
      for (const attacker of ATTACKERS) {
        const done = await attack(address, attacker, FRAMES_OF_ROUND, seed);
        total.frames += done.frames;
        total.connections += done.connections;
        total.blockedMs = Math.max(total.blockedMs, done.blockedMs);
        total.peak = Math.max(total.peak, residentBytes(scheduler.child.pid!));
        await client.identity();
      }
      process.stdout.write(
        `seed ${seed}: ${total.frames} frames on ${total.connections} connections, slowest answer ${Math.round(total.blockedMs)} ms, memory ${Math.round((total.peak - idle) / MIB)} MiB above idle\n`,
      );
    }
    await client.close();
  } finally {
    await runs.end('SIGKILL');
  }
}
