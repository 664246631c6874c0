import { afterAll, beforeAll, expect, it } from 'vitest';

import { Client } from '../../adapters/client/index.ts';
import { square } from '../adapters/cli/fixtures/tasks.js';
import { Runs } from '../kit/runs.ts';
import { attack, type Attacker, residentBytes } from './attack.ts';

const MIB = 1024 * 1024;
const runs = new Runs();
let address: string;
let pid: number;
let client: Client;

beforeAll(async () => {
  const scheduler = runs.yardmaster(
    'scheduler',
    '--port',
    '0',
    '--insecure',
    '--log-level',
    'silent',
  );
  address = await scheduler.firstLine();
  pid = scheduler.child.pid!;
  await runs.yardmaster('worker', address, '--threads', '1', '--no-nanny').firstLine();
  client = await Client.connect(address);
  expect(await client.submit(square, 3).result()).toBe(9);
}, 60_000);

afterAll(async () => {
  await client.close();
  await runs.end('SIGKILL');
});

it.each<[Attacker, number]>([
  ['stranger', 1500],
  ['client', 1500],
  ['worker', 1500],
])(
  'hostile frames of a %s end no scheduler, take no memory and spoil no result',
  async (attacker, frames) => {
    const seed = Number(process.env['HOSTILE_SEED'] ?? 1 + (Date.now() % 1_000_000));
    const before = residentBytes(pid);
    const done = await attack(address, attacker, frames, seed);
    expect(await client.submit(square, 12).result(), `seed ${seed}`).toBe(144);
    expect(done.blockedMs, `seed ${seed}`).toBeLessThan(2000);
    expect(residentBytes(pid) - before, `seed ${seed}`).toBeLessThan(300 * MIB);
  },
  120_000,
);
