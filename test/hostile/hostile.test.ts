import { afterAll, beforeAll, expect, it } from 'vitest';

import { square } from '../adapters/cli/fixtures/tasks.js';
import { Runs } from '../kit/runs.ts';
import { residentBytes } from './attack.ts';
import { openPorts, type Ports } from './wires.ts';

const MIB = 1024 * 1024;
const FRAMES = 1000;
const runs = new Runs();
let ports: Ports;

beforeAll(async () => {
  ports = await openPorts(runs);
  expect(await ports.client.submit(square, 3).result()).toBe(9);
});

afterAll(async () => {
  await ports.client.close();
  await runs.end('SIGKILL');
});

it.each([
  'own wire, stranger',
  'own wire, client',
  'own wire, worker',
  "Dask's wire, stranger",
  "Dask's wire, caller",
  "Dask's wire, client",
  "Dask's wire, worker",
  'data port of a worker',
  'dashboard',
])('hostile frames to the %s end no process, take no memory and spoil no result', async (name) => {
  const seed = Number(process.env['HOSTILE_SEED'] ?? 1 + (Date.now() % 1_000_000));
  const wire = ports.wires.find((each) => each.name === name)!;
  const before = residentBytes(wire.pid);
  const done = await wire.attack(FRAMES, seed);
  expect(await ports.client.submit(square, 12).result(), `seed ${seed}`).toBe(144);
  expect(done.blockedMs, `seed ${seed}`).toBeLessThan(2000);
  expect(residentBytes(wire.pid) - before, `seed ${seed}`).toBeLessThan(300 * MIB);
});
