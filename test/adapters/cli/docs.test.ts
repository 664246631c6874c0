import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;
/** Where the package is: this project, or what was packed and installed from it (`test/consumer`). */
const PACKAGE = process.env['YARDMASTER_PACKAGE'] ?? ROOT;
const CLI = join(PACKAGE, 'dist/bundle/cli.js');
const exec = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), 'yardmaster-docs-'));
afterAll(() => {
  rmSync(root, { recursive: true });
});

/** The code of a document, or of one of its chapters: what begins with the name of a file, and the rest in order. */
function codeOf(
  document: string,
  chapter?: string,
): { files: Map<string, string>; rest: string[] } {
  const files = new Map<string, string>();
  const rest: string[] = [];
  const all = readFileSync(join(ROOT, document), 'utf8');
  const text =
    chapter === undefined
      ? all
      : all.split(/^## /m).find((part) => part.startsWith(`${chapter}\n`))!;
  for (const [, code = ''] of text.matchAll(/^```(?:js|yaml)\n(.*?)^```$/gms)) {
    const name = /^(?:\/\/|#) ([\w-]+(?:\.\w+)+)/.exec(code)?.[1];
    if (name === undefined) rest.push(code);
    else files.set(name, code);
  }
  return { files, rest };
}

const SQUARE = `import { defineTasks } from 'yardmaster';
export const { square } = defineTasks(import.meta.url, { square: (x) => x * x });
`;

const POLICY_TASKS = `import { defineTasks } from 'yardmaster';
export const { load, total } = defineTasks(import.meta.url, {
  load: (n) => n * n,
  total: (numbers) => numbers.reduce((sum, n) => sum + n, 0),
});
`;

/** Computes the same with each of the policies. */
const POLICY_MAIN = `import { LocalCluster } from 'yardmaster';
import { load, total } from './tasks.js';

for (const [file, slot] of SLOTS) {
  const entry = { use: process.cwd() + '/' + file };
  const policies = { [slot]: slot === 'rules' ? [entry] : entry };
  const config = { scheduler: { validate: true, policies } };
  const cluster = await LocalCluster.start({ workers: 2, mode: 'inline', config });
  const client = await cluster.client({ name: 'nightly' });
  const sum = await client.submit(total, client.map(load, [0, 1, 2, 3, 4])).result();
  const line = cluster.scheduler.bootReport().split('\\n').find((text) => text.includes(slot));
  console.log(line.replace(/ \\(.*/, ''), sum);
  await cluster.close();
}
`;

/** A folder with the files of a document, in which the package is installed. */
function install(name: string, files: ReadonlyMap<string, string>): string {
  const folder = join(root, name);
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(PACKAGE, join(folder, 'node_modules', 'yardmaster'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const [file, code] of files) writeFileSync(join(folder, file), code);
  return folder;
}

/** What a program prints. On a busy machine any stimulus may take long: the warning about it is left out. */
async function run(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string },
): Promise<{ stdout: string; stderr: string }> {
  const { stdout, stderr } = await exec(program, args, options);
  return { stdout, stderr: stderr.replace(/^.* blocked the scheduler for .*\n/gm, '') };
}

describe('the code in', () => {
  test('the README runs', async () => {
    const { files } = codeOf('README.md');
    expect([...files.keys()]).toEqual(['tasks.js', 'main.js', 'pack.js', 'cluster.yaml']);
    const cwd = install('readme', files);
    const { stdout } = await run(process.execPath, ['main.js'], { cwd });
    expect(stdout).toBe('30\n');
    const checked = await run(process.execPath, [CLI, 'check-config', 'cluster.yaml'], { cwd });
    expect(checked.stdout).toContain('pack');
    // The policy decides, and everything is computed.
    const withPolicy = files
      .get('main.js')!
      .replace('workers: 2', "workers: 2, config: 'cluster.yaml'");
    writeFileSync(join(cwd, 'with-policy.js'), withPolicy);
    expect((await run(process.execPath, ['with-policy.js'], { cwd })).stdout).toBe('30\n');
  });

  test('the first guide runs', async () => {
    const { files } = codeOf('docs/getting-started.md');
    const cwd = install('getting-started', files);
    const { stdout } = await run(process.execPath, ['main.js'], { cwd });
    expect(Number(stdout)).toBeGreaterThan(50);
    await run(process.execPath, [CLI, 'check-config', 'cluster.yaml'], { cwd });
  });

  test('the guide to policies runs, each policy by itself', async () => {
    const { files } = codeOf('docs/policies.md');
    const slots = Object.entries({
      'pack.js': 'workerSelection',
      'loaders.js': 'queuing',
      'by-day.js': 'fairness',
      'long-tasks.js': 'stealing',
      'on-gpu.js': 'rules',
    }).filter(([file]) => files.has(file));
    expect(slots).toHaveLength(5);
    files.set('tasks.js', POLICY_TASKS);
    files.set('main.js', POLICY_MAIN.replace('SLOTS', JSON.stringify(slots)));
    const cwd = install('policies', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual([
      '- workerSelection: pack 30',
      '- queuing: loaders 30',
      '- fairness: by-day 30',
      '- stealing: long-tasks 30',
      '- rules: on-gpu 30',
    ]);
  });

  test('the guide to results that outlive the cluster runs, and the second time reads them', async () => {
    const { files } = codeOf('docs/persistence.md', 'Results that outlive the cluster');
    const cwd = install('persistence', files);
    for (const time of ['first', 'second']) {
      const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
      expect([time, stdout, stderr]).toEqual([time, '30\n', '']);
    }
    const other = await run(process.execPath, ['other.js'], { cwd });
    expect([other.stdout, other.stderr]).toEqual(['25\n', '']);
  });

  test('the page of questions runs, each program by itself', async () => {
    const { files } = codeOf('docs/questions.md');
    const cwd = install('questions', files);
    const programs = [...files].filter(([file]) => file !== 'tasks.js');
    expect(programs).toHaveLength(6);
    for (const [file, code] of programs) {
      const { stdout, stderr } = await run(process.execPath, [file], { cwd });
      // Beside each line that prints stands what it prints.
      const printed = [...code.matchAll(/^console\.log\(.*\);(?: \/\/ (\w+(?:\.\d+)?).*)?$/gm)];
      const expected = printed.map(([, value]) => `${value ?? 'passed'}\n`).join('');
      expect([file, stdout, stderr]).toEqual([file, expected, '']);
    }
  });

  test('the guide to executors runs', async () => {
    const { files } = codeOf('docs/transports.md');
    files.set('tasks.js', SQUARE);
    files.set(
      'conformance.js',
      `import { describe, it } from 'node:test';
import { executorConformance } from 'yardmaster/testing';
import timed from './timed-executor.js';
executorConformance('timed', () => ({ create: (context) => timed.create(context, {}) }), { describe, it });`,
    );
    const cwd = install('executors', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['[ 1, 4, 9 ] true\n', '']);
    await run(process.execPath, ['conformance.js'], { cwd });
  });

  test("the guide to Mars' scheduling service runs", async () => {
    const { files, rest } = codeOf('docs/scheduling-api.md');
    files.set(
      'cluster.yaml',
      rest.find((code) => code.startsWith('scheduling:'))!,
    );
    const cwd = install('scheduling-api', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['25\na true\nb true\nsum true\n', '']);
    const checked = await run(process.execPath, [CLI, 'check-config', 'cluster.yaml'], { cwd });
    expect(checked.stdout).toContain('quota acts on workers with a memory limit only');
  });

  test('the guide to tasks that submit tasks runs', async () => {
    const { files } = codeOf('docs/coordination.md', 'Tasks that submit tasks');
    const cwd = install('inside-tasks', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['21\n', '']);
  });

  test('the guide to plugins of workers runs', async () => {
    const { files } = codeOf('docs/plugins.md', 'Plugins of workers and nannies');
    const cwd = install('worker-plugins', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['7\n', '']);
    const { default: proxy } = (await import(join(cwd, 'proxy.js'))) as {
      default: { setup(context: object, options: object): Record<string, (given: object) => void> };
    };
    const environment: Record<string, string> = {};
    proxy.setup({}, { url: 'http://proxy' })['processStarting']?.(environment);
    expect(environment).toEqual({ HTTPS_PROXY: 'http://proxy' });
  });

  test('the guide to actors runs', async () => {
    const { files } = codeOf('docs/coordination.md', 'Actors');
    const cwd = install('actors', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['2\n2 3\n', '']);
  });

  test('the graph of the literature in the guide to benchmarks runs', async () => {
    const { files } = codeOf('docs/benchmarks.md');
    const cwd = install('benchmarks', files);
    const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
    expect([stdout, stderr]).toEqual(['552 tasks, as in the literature\n28 bytes\n', '']);
  });

  test('the guide to the memory manager runs', async () => {
    const { files } = codeOf('docs/policies.md');
    const cwd = install('plugins', files);
    const { stdout } = await run(process.execPath, ['pin.js'], { cwd });
    expect(stdout.trim().split('\n')).toEqual([
      'table-a worker-1',
      'table-b worker-1',
      'index-a worker-0',
    ]);
  });

  test('the guide to testing a plugin runs', async () => {
    const { files } = codeOf('docs/plugins.md');
    files.set('tasks.js', SQUARE);
    const cwd = install('testing', files);
    const { stdout, stderr } = await run(process.execPath, ['counter.test.js'], { cwd });
    expect([stdout, stderr]).toEqual(['0\n', '']);
  });

  test('the guide to the client runs', async () => {
    const { files, rest } = codeOf('docs/client.md');
    const transport = new TcpTransport(new SystemClock());
    const cluster = await LocalCluster.start({ workers: 2, transport });
    try {
      const main = rest.join('\n').replaceAll('tls://127.0.0.1:8786', cluster.address);
      const end = 'console.log(await both[0].result(), await both[1].result(), await c.result());';
      files.set('main.js', `${main}\n${end}\nawait client.close();\n`);
      const cwd = install('client', files);
      const { stdout } = await run(process.execPath, ['main.js'], { cwd });
      expect(stdout.split('\n').filter((line) => line !== '')).toEqual([
        '14',
        '1',
        '4',
        '9',
        '2',
        '4',
        '6',
        '1',
        '4',
        '9',
        '81',
        '3 of 3, 0 failed, 0 cancelled',
        '6 9 25',
      ]);
    } finally {
      await cluster.close();
    }
  });

  test('the guide to coordination runs', async () => {
    const { files, rest } = codeOf('docs/coordination.md', 'Coordination');
    const transport = new TcpTransport(new SystemClock());
    const cluster = await LocalCluster.start({ workers: 1, transport });
    try {
      files.set('tasks.js', SQUARE);
      const main = rest.join('\n').replaceAll('tls://127.0.0.1:8786', cluster.address);
      const end = `import { count } from './counting.js';
await client.variable('n').set(0);
const impure = client.with({ pure: false });
const counts = Array.from({ length: 5 }, () => impure.submit(count, 'n'));
console.log((await client.gather(counts)).sort().join(' '));
await Promise.all([client.close(), other.close()]);
`;
      files.set('main.js', `${main}\n${end}`);
      const cwd = install('coordination', files);
      const { stdout, stderr } = await run(process.execPath, ['main.js'], { cwd });
      expect(stderr).toBe('');
      expect(stdout.trim().split('\n')).toEqual([
        '9',
        '1 1 0',
        'true',
        '0',
        'false',
        "[ 'squares' ]",
        '[ 1, 4, 9 ]',
        '1 1',
        '1 2 3 4 5',
      ]);
    } finally {
      await cluster.close();
    }
  });
});
