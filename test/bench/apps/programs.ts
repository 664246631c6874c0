/** The applications, each written with Yardmaster and with what an engineer would otherwise take. */
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { type Cost, costOf } from './process-tree.ts';

/** One way to write an application. */
export interface Program {
  readonly name: string;
  /** Of Node, without Node itself. */
  readonly args: readonly string[];
  /** Where it runs; empty before each run. */
  readonly cwd: string;
  /** Its source. */
  readonly files: readonly string[];
  /** Makes what it finds when it starts, of which the cost does not count. */
  readonly before?: () => Promise<unknown>;
  /**
   * Of a service, which prints its address first: calls it, as long as its cost is measured, from the start or from `begin`,
   * and says what came of it. Without this a program ends by itself.
   */
  readonly use?: (address: string, begin: () => void) => Promise<string>;
}

export interface Application {
  /** Makes what the programs read. */
  generate(): Promise<void>;
  readonly programs: readonly Program[];
}

/** How much data; 1 is for a minute on two cores. */
export type Size = number;

/** Where the site of the crawl is. */
const PORT = '8123';

/** Where sources are: neither examples nor the other programs are compiled. */
const ROOT = new URL('../../../..', import.meta.url).pathname;
const OTHERS = join(ROOT, 'test/bench/apps');
const EXAMPLES = join(ROOT, 'docs/examples');

export const APPLICATIONS: Readonly<Record<string, (size: Size, folder: string) => Application>> = {
  pipeline,
  etl,
  images,
  crawl,
  web,
  'web-start': webStart,
  search,
  build,
};

/** A pipeline of documents, and the same when all of its results are kept. */
function pipeline(size: Size, folder: string): Application {
  const data = join(folder, 'documents');
  const cwd = join(folder, 'run');
  const pathOf = (file: string): string => join(OTHERS, 'pipeline', file);
  const of = (name: string, files: readonly string[]): Program[] => {
    const args = [pathOf(files[0] ?? ''), data];
    const program = { name: `${name}, resumes`, args, cwd, files: files.map(pathOf) };
    const before = (): Promise<Cost> => costOf(args, cwd);
    return [program, { ...program, name: `${name}, all is kept`, before }];
  };
  return {
    generate: () => generateBy(pathOf('generate.js'), data, Math.ceil(3000 * size)),
    programs: [
      ...of('yardmaster, threads', ['yardmaster.js']),
      ...of('piscina and files', ['piscina.js', 'piscina-worker.js']),
    ],
  };
}

/** Makes the data of an application by the module that it has for this. */
async function generateBy(path: string, folder: string, ...amounts: number[]): Promise<void> {
  const { generate } = (await import(path)) as {
    generate: (folder: string, ...amounts: number[]) => Promise<unknown>;
  };
  await generate(folder, ...amounts);
}

function etl(size: Size, folder: string): Application {
  const data = join(folder, 'data');
  const amount = { parts: Math.ceil(16 * size), rows: 100_000 };
  const example = exampleIn(folder, 'etl');
  const others = join(OTHERS, 'etl');
  const cwd = join(folder, 'run');
  const of = (name: string, mode: string): Program => ({
    name,
    args: [join(example, 'main.js'), ...[String(amount.parts), String(amount.rows), mode, data]],
    cwd,
    files: ['main.js', 'tasks.js', 'duckdb.js'].map((file) => join(EXAMPLES, 'etl', file)),
  });
  const inputs = [join(data, `orders-*-${amount.rows}.csv`), join(data, 'customers.csv')];
  const other = (name: string, files: readonly string[]): Program => ({
    name,
    args: [join(others, files[0] ?? ''), ...inputs, 'out.parquet'],
    cwd,
    files: files.map((file) => join(others, file)),
  });
  return {
    generate: () => generateBy(join(EXAMPLES, 'etl/generate.js'), data, amount.parts, amount.rows),
    programs: [
      of('yardmaster, processes, resumes', 'processes'),
      of('yardmaster, threads, resumes', 'threads'),
      of('yardmaster, inline, resumes', 'inline'),
      other('piscina and files', ['piscina.js', 'piscina-worker.js']),
      other('DuckDB alone', ['duckdb.js']),
    ],
  };
}

function images(size: Size, folder: string): Application {
  const data = join(folder, 'pictures');
  const others = join(OTHERS, 'images');
  const cwd = join(folder, 'run');
  const of = (name: string, files: readonly string[]): Program => ({
    name,
    args: [join(others, files[0] ?? ''), data, '.'],
    cwd,
    files: files.map((file) => join(others, file)),
  });
  return {
    generate: () => generateBy(join(others, 'generate.js'), data, Math.ceil(200 * size)),
    programs: [
      of('yardmaster, inline', ['yardmaster.js']),
      of('p-queue and sharp', ['p-queue.js']),
    ],
  };
}

function crawl(size: Size, folder: string): Application {
  const pages = String(Math.ceil(200 * size));
  const example = exampleIn(folder, 'crawl');
  const others = join(OTHERS, 'crawl');
  const cwd = join(folder, 'run');
  const of = (mode: string): Program => ({
    name: `yardmaster, ${mode}, resumes`,
    // A page that is kept is found under the same address alone.
    args: [join(example, 'main.js'), pages, mode, PORT],
    cwd,
    files: ['main.js', 'tasks.js'].map((file) => join(EXAMPLES, 'crawl', file)),
  });
  return {
    generate: () => Promise.resolve(),
    programs: [
      of('threads'),
      of('inline'),
      {
        name: 'p-queue and piscina',
        args: [join(others, 'p-queue.js'), pages],
        cwd,
        files: ['p-queue.js', 'p-queue-worker.js'].map((file) => join(others, file)),
      },
    ],
  };
}

/** Of a service that has just been started. */
function webStart(size: Size, folder: string): Application {
  return web(size, folder, 0);
}

/** @param before - calls that are not measured, in which the engine compiles what it uses often */
function web(size: Size, folder: string, before = 20_000): Application {
  const others = join(OTHERS, 'web');
  const calls = Math.ceil(20_000 * size);
  const of = (name: string, file: string): Program => ({
    name,
    args: [join(others, file)],
    cwd: join(folder, 'run'),
    files: [join(others, file)],
    async use(address, begin) {
      if (before > 0) {
        await callAll(`${address}/digest`, before);
        begin();
      }
      return callAll(`${address}/digest`, calls);
    },
  });
  return {
    generate: () => Promise.resolve(),
    programs: [of('yardmaster, threads', 'yardmaster.js'), of('p-queue and piscina', 'p-queue.js')],
  };
}

/** Calls that are open at any time. */
const CONNECTIONS = 16;

/** Calls a service again and again, from sixteen connections. */
async function callAll(address: string, calls: number): Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const body = JSON.stringify({ text: 'a small call', rounds: 10 });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  let left = calls;
  const failed = new Map<number, number>();
  const connection = async (): Promise<void> => {
    while (left-- > 0) {
      const status = await new Promise<number>((resolve, reject) => {
        const call = request(address, { method: 'POST', agent, headers }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0));
        });
        call.on('error', reject).end(body);
      });
      if (status !== 200) failed.set(status, (failed.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  agent.destroy();
  return [`${calls} calls`, ...failed].join(', ');
}

function search(size: Size, folder: string): Application {
  const candidates = String(Math.ceil(490 * size));
  // No error is that small: how many rounds it takes to a larger one depends on the order in which rounds end.
  const goal = '0';
  const example = exampleIn(folder, 'search');
  const of = (mode: string): Program => ({
    name: `yardmaster, ${mode}`,
    args: [join(example, 'main.js'), candidates, mode, goal],
    cwd: join(folder, 'run'),
    files: [join(EXAMPLES, 'search/main.js')],
  });
  const other = join(OTHERS, 'search/p-queue.js');
  return {
    generate: () => Promise.resolve(),
    programs: [
      of('threads'),
      {
        name: 'p-queue and piscina',
        args: [other, candidates, goal],
        cwd: join(folder, 'run'),
        files: [other],
      },
    ],
  };
}

/** The build of all units, of none because nothing has changed, and after a comment has changed. */
function build(size: Size, folder: string): Application {
  const example = exampleIn(folder, 'build');
  const cwd = join(folder, 'run');
  const generate = (): Promise<Cost> => {
    return costOf([join(example, 'generate.js'), String(Math.ceil(400 * size))], cwd);
  };
  const of = (name: string, file: string): Program[] => {
    const program = {
      name,
      args: [join(example, file)],
      cwd,
      files: [join(EXAMPLES, 'build', file)],
    };
    const again = async (): Promise<void> => {
      await generate();
      await costOf(program.args, cwd);
    };
    const change = async (): Promise<void> => {
      await again();
      const unit = join(cwd, 'src/unit0009.ts');
      writeFileSync(unit, readFileSync(unit, 'utf8').replace('Adds up', 'Sums up'));
    };
    return [
      { ...program, before: generate },
      { ...program, name: `${name}, nothing to do`, before: again },
      { ...program, name: `${name}, a comment`, before: change },
    ];
  };
  return {
    generate: () => Promise.resolve(),
    programs: [...of('yardmaster', 'main.js'), ...of('piscina and files', 'plain.js')],
  };
}

/** An example in a folder where it finds the packages that it uses. */
function exampleIn(folder: string, name: string): string {
  const path = join(folder, name);
  rmSync(path, { recursive: true, force: true });
  cpSync(join(EXAMPLES, name), path, { recursive: true });
  mkdirSync(join(path, 'node_modules'));
  symlinkSync(ROOT, join(path, 'node_modules/yardmaster'));
  for (const name of ['@duckdb', 'piscina', 'typescript']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(path, 'node_modules', name));
  }
  return path;
}
