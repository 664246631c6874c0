import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Client } from '../../adapters/client/index.ts';
import type { Run } from '../kit/runs.ts';
import { useLive } from '../kit/live.ts';
import { bad } from './fixtures/bad-tasks.js';

const { folder, runs } = useLive('processes');

/** A command that prints its address once it is up. */
async function start(...args: string[]): Promise<{ readonly run: Run; readonly address: string }> {
  const run = runs.yardmaster(...args);
  return { run, address: await run.firstLine() };
}

/** Sends bytes, and resolves with what came back when the other side has hung up. */
function talk(address: string, bytes: Uint8Array | string, end = false): Promise<string> {
  const { hostname, port } = new URL(address.replace('tcp:', 'http:'));
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes);
      if (end) socket.end();
    });
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    socket.once('close', () => resolve(answer)).once('error', reject);
  });
}

const HELLO = Buffer.from('yardmaster-tcp/1\n');

test('a scheduler survives peers that talk nonsense, and says what they said', async () => {
  const scheduler = await start(
    'scheduler',
    '--port',
    '0',
    '--no-dashboard',
    '--insecure',
    '--log-format',
    'text',
  );
  const { address } = scheduler;
  await talk(address, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await talk(address, Buffer.concat([HELLO, Buffer.from([255, 255, 255, 255])]));
  await talk(address, Buffer.concat([HELLO, Buffer.from([0, 0, 0, 5]), Buffer.from('hello')]));
  await talk(address, Buffer.concat([HELLO, Buffer.from([0, 0, 0, 5]), Buffer.from('he')]), true);
  await start('worker', address, '--threads', '1', '--no-nanny');
  const client = await Client.connect(address);
  expect(await client.submit(bad.echo, 'still here').result()).toBe('still here');
  await client.close();
  const lines = scheduler.run.stderr.trim().split('\n');
  expect(lines).toEqual([
    expect.stringMatching(
      /^yardmaster scheduler error: connection with tcp:.* seems to speak HTTP/,
    ),
    expect.stringContaining('a frame of 4294967295 bytes; the limit is'),
    expect.stringContaining('a frame of 5 bytes is not msgpack'),
    expect.stringContaining('ended within a frame: 2 of 5 bytes came'),
  ]);
});

test('a worker whose name is taken is refused with the name', async () => {
  const { address } = await start('scheduler', '--port', '0', '--no-dashboard');
  await start('worker', address, '--name', 'left', '--threads', '1', '--no-nanny');
  await expect(
    start('worker', address, '--name', 'left', '--threads', '1', '--no-nanny'),
  ).rejects.toThrow(
    'ERR_REGISTRATION: there is a worker with the name "left" already; stop it, or choose another',
  );
});

test('when the scheduler dies, all that a client has open fails', async () => {
  const scheduler = await start('scheduler', '--port', '0', '--no-dashboard');
  const client = await Client.connect(scheduler.address);
  const open = [
    client.submit(bad.echo, 1).result(), // No worker: it would wait for ever.
    client.gather(client.map(bad.echo, [2, 3])),
    client.command('processing').then(() => client.submit(bad.echo, 4).result()),
  ];
  await client.identity();
  scheduler.run.child.kill('SIGKILL');
  for (const outcome of await Promise.allSettled(open)) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_CLOSED' } });
  }
  await client.close();
});

test('a scheduler without workers says that tasks wait', async () => {
  const scheduler = await start('scheduler', '--port', '0', '--no-dashboard');
  const client = await Client.connect(scheduler.address);
  const result = client.submit(bad.echo, 5).result();
  while (!scheduler.run.stderr.includes('\n')) await new Promise(setImmediate);
  expect(JSON.parse(scheduler.run.stderr)).toMatchObject({
    level: 40,
    msg: expect.stringContaining('there is no worker for 1 task') as string,
  });
  await start('worker', scheduler.address, '--threads', '1');
  expect(await result).toBe(5);
  await client.close();
});

test('a plugin with an error of syntax is named, with a way to find the place', async () => {
  const config = join(folder, 'cluster.yaml');
  writeFileSync(join(folder, 'broken.mjs'), 'export default {');
  writeFileSync(config, 'scheduler: { plugins: [{ use: ./broken.mjs }] }');
  await expect(start('check-config', config)).rejects.toThrow(
    `"node --check ${join(folder, 'broken.mjs')}" shows where`,
  );
});
