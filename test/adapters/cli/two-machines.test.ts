/**
 * Two machines, which are two network namespaces of Linux with a cable between them, and real processes. Skipped where this
 * process may not make namespaces.
 */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Run, Runs } from '../../kit/runs.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const TASKS = new URL('../../bad-input/fixtures/bad-tasks.js', import.meta.url).href;
const HERE = `ym-a-${process.pid}`;
const THERE = `ym-b-${process.pid}`;

const ip = (...words: string[]): boolean =>
  spawnSync('ip', words, { stdio: 'ignore' }).status === 0;
const canSeparate = process.getuid?.() === 0 && ip('netns', 'add', HERE);

function connectMachines(): void {
  const [left, right] = [`ya${process.pid}`, `yb${process.pid}`];
  const commands = [
    `netns add ${THERE}`,
    `link add ${left} netns ${HERE} type veth peer name ${right} netns ${THERE}`,
    `-n ${HERE} addr add 10.77.0.1/24 dev ${left}`,
    `-n ${THERE} addr add 10.77.0.2/24 dev ${right}`,
    ...[`${HERE} link set ${left}`, `${THERE} link set ${right}`].map((link) => `-n ${link} up`),
    ...[HERE, THERE].map((name) => `-n ${name} link set lo up`),
    // No route leads to this address from the other machine.
    `-n ${THERE} addr add 10.99.0.2/32 dev lo`,
  ];
  for (const command of commands) {
    if (!ip(...command.split(' '))) throw new Error(`ip ${command} failed`);
  }
}

describe.skipIf(!canSeparate)('a cluster on two machines', () => {
  const runs = new Runs();
  beforeAll(connectMachines);
  afterEach(() => runs.end());
  afterAll(() => {
    for (const name of [HERE, THERE]) ip('netns', 'del', name);
  });

  const on = (machine: string, ...args: string[]): Run =>
    runs.start('ip', ['netns', 'exec', machine, process.execPath, ...args]);
  const start = (machine: string, ...words: string[]): Run => on(machine, CLI, ...words);

  async function scheduler(): Promise<string> {
    const words = ['scheduler', '--host', '10.77.0.1', '--port', '0', '--no-dashboard'];
    return start(HERE, ...words).firstLine();
  }

  function worker(machine: string, address: string, name: string, ...more: string[]): Run {
    return start(
      machine,
      'worker',
      address,
      '--name',
      name,
      '--threads',
      '1',
      '--no-nanny',
      ...more,
    );
  }

  /** What a program on the first machine prints; it has `client` and `bad`. */
  async function program(address: string, body: string): Promise<string> {
    const code = `
      import { Client } from 'yardmaster';
      const { bad } = await import(${JSON.stringify(TASKS)});
      const client = await Client.connect(${JSON.stringify(address)});
      const on = (worker) => client.with({ workers: [worker] });
      ${body}
      await client.close();`;
    const run = on(HERE, '--input-type=module', '-e', code);
    const status = await run.exit;
    expect([status, run.stderr]).toEqual([0, '']);
    return run.stdout.trim();
  }

  const INPUTS = `
    const near = on('near').submit(bad.echo, 'n'.repeat(100_000));
    const far = on('far').submit(bad.echo, 'f'.repeat(100_000));`;

  it('needs no --host: workers announce the address by which they reach the scheduler', async () => {
    const address = await scheduler();
    const lines = [worker(HERE, address, 'near'), worker(THERE, address, 'far')];
    expect(await Promise.all(lines.map((run) => run.firstLine()))).toEqual([
      expect.stringMatching(/^tls:\/\/10\.77\.0\.1:/),
      expect.stringMatching(/^tls:\/\/10\.77\.0\.2:/),
    ]);
    const both = `${INPUTS}
      for (const name of ['near', 'far']) {
        console.log((await on(name).submit(bad.echo, [near, far]).result()).join('').length);
      }`;
    expect(await program(address, both)).toBe('200000\n200000');
  });

  it('refuses a worker that announces a loopback address, with the remedy', async () => {
    const address = await scheduler();
    const refused = worker(THERE, address, 'far', '--host', '127.0.0.1');
    expect(await refused.exit).not.toBe(0);
    expect(refused.stderr).toMatch(
      /announces the address tls:\/\/127\.0\.0\.1:\d+, .* connected from 10\.77\.0\.2; start it with --host/,
    );
  });

  it('computes where the input is that others cannot fetch', async () => {
    const address = await scheduler();
    await worker(HERE, address, 'near').firstLine();
    await worker(THERE, address, 'far', '--host', '10.99.0.2').firstLine();
    const sizes = `${INPUTS}
      const large = on('near').submit(bad.echo, 'l'.repeat(1_000_000));
      console.log(await client.submit(bad.lengthOf, [far, large, near]).result());`;
    expect(await program(address, sizes)).toBe('3');
  });

  it('fails a task whose inputs cannot be fetched, with the reason', async () => {
    const address = await scheduler();
    await worker(HERE, address, 'near').firstLine();
    await worker(THERE, address, 'far', '--host', '10.99.0.2').firstLine();
    const failing = `${INPUTS}
      const error = await on('near').submit(bad.lengthOf, far).result().catch((error) => error);
      console.log(error.code, error.message);`;
    expect(await program(address, failing)).toMatch(
      /^ERR_UNREACHABLE the inputs of .* could not reach tls:\/\/10\.99\.0\.2:\d+: .*ENETUNREACH.*--host/s,
    );
  });

  it('settles a result that nothing but its worker can reach', async () => {
    const address = await scheduler();
    await worker(HERE, address, 'near').firstLine();
    await worker(THERE, address, 'far', '--host', '10.99.0.2').firstLine();
    const failing = `${INPUTS}
      const error = await far.result().catch((error) => error);
      console.log(error.code, error.message);`;
    expect(await program(address, failing)).toMatch(/^ERR_/);
  });
});
