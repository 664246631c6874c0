/** A start loads no package that few need: the build has compiled the schemas of messages, and the rest is imported where it is used. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { useLive } from '../kit/live.ts';
import { ROOT } from './source-files.ts';

const BUILT = join(ROOT, 'dist/adapters/app/index.js');
const BUNDLE = join(ROOT, 'dist/bundle/cli.js');
const HEAVY = ['ajv', 'fastify', '@fastify/websocket', 'prom-client', 'yaml'];
const { runs } = useLive('loaded');

/** Prints the packages that the process has loaded, as JSON. */
const PRINT = `
import { createRequire } from 'node:module';
const print = () => {
  const files = Object.keys(createRequire(import.meta.url).cache);
  const names = files.flatMap((file) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)\\//.exec(file)?.[1] ?? []);
  process.stdout.write(JSON.stringify([...new Set(names)]));
};`;

/** Runs a cluster of threads with everything built in. */
const CLUSTER = `${PRINT}
import { LocalCluster } from ${JSON.stringify(BUILT)};
const cluster = await LocalCluster.start({ workers: 1, mode: 'threads' });
const client = await cluster.client();
const commands = await client.command('commands');
for (const name of commands) await client.command(name, { unheardOf: 1 }).catch(() => undefined);
await cluster.close();
print();
`;

const SCHEDULER = `${PRINT}
process.argv.push('scheduler', '--port', '0', '--no-dashboard');
process.once('exit', print);
await import(${JSON.stringify(BUNDLE)});
`;

const run = (script: string): string[] => ['--input-type=module', '-e', script];

it.skipIf(!existsSync(BUILT))(
  'a cluster starts and answers every command without packages that few need',
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, run(CLUSTER), { cwd: ROOT });
    const loaded = JSON.parse(stdout) as string[];
    expect(loaded.filter((name) => HEAVY.includes(name))).toEqual([]);
  },
);

it.skipIf(!existsSync(BUNDLE))(
  'the command `scheduler` starts without those of the dashboard and of configurations, when it has neither',
  async () => {
    const scheduler = runs.start(process.execPath, run(SCHEDULER));
    await scheduler.firstLine();
    scheduler.child.kill('SIGTERM');
    await scheduler.exit;
    const loaded = JSON.parse(scheduler.stdout.split('\n')[1]!) as string[];
    expect(loaded).toContain('commander');
    expect(loaded.filter((name) => HEAVY.includes(name))).toEqual([]);
  },
);
