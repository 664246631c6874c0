import { type AddressInfo, createServer } from 'node:net';

import { Client } from '../../adapters/client/index.ts';
import { type Run, Runs } from '../kit/runs.ts';
import {
  type Attack,
  answerMs,
  attack,
  type Attacker,
  busyMs,
  residentBytes,
  toolsOf,
} from './attack.ts';
import { attackDashboard } from './dashboard-attack.ts';
import { attackDask, type DaskAttacker } from './dask-attack.ts';
import { attackDataPort, dataPortMs } from './data-port-attack.ts';

const MIB = 1024 * 1024;

/** One way in, and the process behind it. */
export interface Wire {
  readonly name: string;
  /** Sends so many hostile frames. */
  readonly attack: (frames: number, seed: number) => Promise<Attack>;
  readonly run: Run;
  readonly pid: number;
}

/** Real processes with every port that there is. */
export interface Ports {
  readonly wires: readonly Wire[];
  readonly client: Client;
}

/** A scheduler with Dask's port and a dashboard, and one worker. */
export async function openPorts(runs: Runs): Promise<Ports> {
  const quiet = ['--log-level', 'silent'];
  const port = await freePort();
  const scheduler = runs.yardmaster(
    ...[
      'scheduler',
      '--dask',
      '--insecure',
      '--dask-port',
      '0',
      '--port',
      '0',
      '--dashboard',
      String(port),
      '--no-scheduler-python',
    ],
    ...quiet,
  );
  const [dask = '', own = ''] = await scheduler.addresses(2);
  const worker = runs.yardmaster('worker', own, '--threads', '1', '--no-nanny');
  await worker.firstLine();
  const client = await Client.connect(own);
  const { workers } = await client.identity();
  const ofScheduler = { run: scheduler, pid: scheduler.child.pid ?? 0 };
  const answer = busyMs(ofScheduler.pid, () => answerMs(own));
  const ofOwn = (attacker: Attacker): Wire => ({
    name: `own wire, ${attacker}`,
    attack: (frames, seed) => attack(own, attacker, frames, seed, answer),
    ...ofScheduler,
  });
  const ofDask = (attacker: DaskAttacker): Wire => ({
    name: `Dask's wire, ${attacker}`,
    attack: (frames, seed) => attackDask(dask, attacker, frames, toolsOf(seed), answer),
    ...ofScheduler,
  });
  const dataPort = workers[0]?.address ?? '';
  const workerPid = worker.child.pid ?? 0;
  const dataAnswer = busyMs(workerPid, () => dataPortMs(dataPort));
  const wires: Wire[] = [
    ...(['stranger', 'client', 'worker'] as const).map(ofOwn),
    ...(['stranger', 'caller', 'client', 'worker'] as const).map(ofDask),
    {
      name: 'data port of a worker',
      attack: (frames, seed) => attackDataPort(dataPort, frames, toolsOf(seed), dataAnswer),
      run: worker,
      pid: workerPid,
    },
    {
      name: 'dashboard',
      attack: (frames, seed) =>
        attackDashboard(`http://127.0.0.1:${port}`, frames, toolsOf(seed), answer),
      ...ofScheduler,
    },
  ];
  return { wires, client };
}

/** A port that nothing listens at. */
function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Attacks every port with so many frames at once, for as long, and prints figures. */
async function attackAll(framesOfRound: number, isOver: (round: number) => boolean): Promise<void> {
  const runs = new Runs();
  try {
    const { wires, client } = await openPorts(runs);
    const totals = wires.map((wire) => ({
      wire,
      idle: residentBytes(wire.pid),
      frames: 0,
      blockedMs: 0,
      peak: 0,
    }));
    for (let round = 1; !isOver(round); round++) {
      for (const total of totals) {
        const { name, pid, run } = total.wire;
        const done = await total.wire.attack(framesOfRound, round).catch((cause: unknown) => {
          const { exitCode, signalCode } = run.child;
          const end = `exit code ${exitCode}, signal ${signalCode}`;
          throw new Error(`${name}: ${String(cause)} (${end}): ${run.stderr.slice(-4000)}`, {
            cause,
          });
        });
        total.frames += done.frames;
        total.blockedMs = Math.max(total.blockedMs, done.blockedMs);
        total.peak = Math.max(total.peak, residentBytes(pid));
        await client.identity();
        process.stdout.write(
          `${name.padEnd(24)} ${total.frames} frames, busy for ${Math.round(total.blockedMs)} ms at most, memory ${Math.round((total.peak - total.idle) / MIB)} MiB above idle\n`,
        );
      }
    }
    await client.close();
  } finally {
    await runs.end('SIGKILL');
  }
}

/** Attacks every port in turn for so many minutes. */
export function attackFor(minutes: number): Promise<void> {
  const endMs = performance.now() + minutes * 60_000;
  return attackAll(2000, () => performance.now() >= endMs);
}

/** Attacks every port with so many frames. */
export function attackWith(frames: number): Promise<void> {
  return attackAll(frames, (round) => round > 1);
}
