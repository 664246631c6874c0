/** A start does without what few need: the build has compiled the schemas of messages. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ROOT } from './source-files.ts';

const BUILT = join(ROOT, 'dist/adapters/app/index.js');

/** Runs a cluster of threads with everything built in, and lists the packages that its process has loaded. */
const SCRIPT = `
import { createRequire } from 'node:module';
import { LocalCluster } from ${JSON.stringify(join(ROOT, 'dist/adapters/app/index.js'))};
const cluster = await LocalCluster.start({ workers: 1, mode: 'threads' });
const client = await cluster.client();
const commands = await client.command('commands');
for (const name of commands) await client.command(name, { unheardOf: 1 }).catch(() => undefined);
await cluster.close();
const files = Object.keys(createRequire(import.meta.url).cache);
const names = files.flatMap((file) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)\\/(.*)/.exec(file)?.slice(1).join(' ') ?? []);
process.stdout.write(JSON.stringify(names));
`;

it.skipIf(!existsSync(BUILT))(
  'a cluster starts and answers every command without the compiler of schemas and the parser of YAML',
  async () => {
    const args = ['--input-type=module', '-e', SCRIPT];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
    const loaded = JSON.parse(stdout) as string[];
    const heavy = loaded.filter((name) => /^(yaml|ajv) /.test(name));
    expect(heavy).toEqual([]);
  },
);
