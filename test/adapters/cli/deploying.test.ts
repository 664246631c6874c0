/** The files that the guide to deploying offers. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, matchesGlob } from 'node:path';

import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { findDaskPython } from '../dask/pythons.ts';
import { Runs } from '../../kit/runs.ts';
import { ROOT } from '../../tidy/source-files.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const FILES = join(ROOT, 'docs/deploying');
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-deploying-'));
const runs = new Runs();

afterEach(() => runs.end());
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const textOf = (name: string): string => readFileSync(join(FILES, name), 'utf8');

interface Compose {
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly services: Readonly<
    Record<string, { readonly secrets: string[]; readonly entrypoint?: string[] }>
  >;
}

function isThere(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** A folder in which the package is installed. */
function project(): string {
  if (existsSync(join(folder, 'node_modules'))) return folder;
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(CLI, join(folder, 'node_modules/.bin/yardmaster'));
  symlinkSync(ROOT, join(folder, 'node_modules/yardmaster'));
  return folder;
}

/** Lists of words in YAML that call the command line. */
function callsIn(value: unknown): string[][] {
  if (Array.isArray(value)) {
    const words = value.map(String);
    return ['scheduler', 'worker'].includes(words[0] ?? '') ? [words] : value.flatMap(callsIn);
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(callsIn) : [];
}

/** Calls in text, from the name of the command to the end of the line or the quotation. */
function callsOf(text: string): string[][] {
  return [...text.matchAll(/bin\/yardmaster ((?:scheduler|worker|access) [^>&'\n]*)/g)].map(
    ([, call]) => (call as string).trim().split(/\s+/),
  );
}

function calls(): string[][] {
  const yaml = ['compose.yaml', 'kubernetes.yaml'].flatMap((name) =>
    parseAllDocuments(textOf(name)).flatMap((document) => {
      expect(document.errors).toEqual([]);
      return callsIn(document.toJS());
    }),
  );
  const texts = ['yardmaster-scheduler.service', 'yardmaster-worker.service', 'slurm.sh'];
  return [...yaml, ...[...texts, 'compose.yaml'].map(textOf).flatMap(callsOf)];
}

describe('the files of the guide to deploying', () => {
  it('call the command line with commands and flags that there are', () => {
    const found = calls();
    expect(found.length).toBeGreaterThanOrEqual(8);
    const help = new Map<string, string>();
    for (const [name = '', ...words] of found) {
      const text =
        help.get(name) ??
        execFileSync(process.execPath, [CLI, name, '--help'], { encoding: 'utf8' });
      help.set(name, text);
      for (const flag of words.filter((word) => word.startsWith('--'))) {
        expect(text, `${name} ${flag}`).toContain(`${flag} `);
      }
    }
  });

  it.each(['scheduler', 'worker'])(
    'have a unit of the %s with a folder that it may write, for a journal and for results',
    (role) => {
      const unit = textOf(`yardmaster-${role}.service`);
      expect(unit).toMatch(/^StateDirectory=yardmaster$/m);
      const named = [...unit.matchAll(/ \/var\/(?:lib|cache)\/([\w-]+)/g)].map(([, name]) => name);
      for (const name of named) expect(unit).toMatch(new RegExp(`^\\w+Directory=${name}$`, 'm'));
    },
  );

  it.skipIf(!isThere('systemd-analyze'))('have units that systemd takes', () => {
    project();
    for (const role of ['scheduler', 'worker']) {
      const unit = join(folder, `yardmaster-${role}.service`);
      writeFileSync(unit, textOf(`yardmaster-${role}.service`).replaceAll('/srv/app', folder));
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], {
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([0, '']);
    }
  });

  it('keep keys and installed packages out of images', () => {
    const ignored = textOf('.dockerignore').trim().split('\n');
    const { secrets, services } = parseAllDocuments(textOf('compose.yaml'))[0]!.toJS() as Compose;
    expect(ignored).toContain('node_modules');
    for (const { file } of Object.values(secrets)) {
      expect(ignored.some((pattern) => matchesGlob(file.slice(2), pattern))).toBe(true);
    }
    // Each service gets a key of its role, and the client has a program to run.
    for (const { secrets: its } of Object.values(services)) expect(its).toHaveLength(1);
    expect(services['client']!.entrypoint).toEqual(['node', 'main.js', 'tls://scheduler:8786']);
  });

  it('start a cluster within a job of SLURM, and run a program with it', async () => {
    project();
    copyFileSync(join(FILES, 'slurm.sh'), join(folder, 'slurm.sh'));
    // Starts what it is given twice, and hands signals on, as SLURM does on two nodes.
    writeFileSync(
      join(folder, 'srun'),
      '#!/bin/sh\n"$@" & one=$!\n"$@" & two=$!\ntrap \'kill $one $two\' TERM\nwait $one\nwait $two\n',
    );
    chmodSync(join(folder, 'srun'), 0o755);
    writeFileSync(
      join(folder, 'tasks.mjs'),
      "import { defineTasks } from 'yardmaster';\nexport const { square } = defineTasks(import.meta.url, { square: (x) => x * x });\n",
    );
    writeFileSync(
      join(folder, 'main.mjs'),
      `import { Client } from 'yardmaster';
import { square } from './tasks.mjs';
const client = await Client.connect(process.argv[2]);
for (;;) {
  const { workers } = await client.identity();
  if (workers.length === 2) break;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
console.log((await client.gather(client.map(square, [1, 2, 3]))).join(' '));
await client.close();
`,
    );
    const job = new Runs({
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
      HOST: '127.0.0.1',
      WORKER_HOST: '127.0.0.1',
      THREADS: '1',
    });
    const run = job.start('/bin/sh', ['-c', `cd ${folder} && exec ./slurm.sh main.mjs`]);
    expect(await run.exit, run.stderr).toBe(0);
    expect(run.stdout).toMatch(/^1 4 9$/m);
  });

  it.skipIf(findDaskPython() === undefined)(
    'let SpecCluster of Dask start the scheduler and workers for it',
    async () => {
      const guide = readFileSync(join(ROOT, 'docs/deploying.md'), 'utf8');
      const blocks = [...guide.matchAll(/```python\n(.*?)```/gs)].map(([, code]) => code as string);
      const use = blocks[1] as string;
      const indented = use.replaceAll(/^/gm, '    ');
      writeFileSync(
        join(folder, 'deploy.py'),
        `${blocks[0] as string}\nif __name__ == "__main__":\n${indented}\n`,
      );
      const program = `cd ${project()} && exec ${findDaskPython()!.command} deploy.py`;
      const run = runs.start('/bin/sh', ['-c', program]);
      expect(await run.exit, run.stderr).toBe(0);
      expect(run.stdout).toBe('6\n');
    },
  );
});
