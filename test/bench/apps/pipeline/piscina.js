/** piscina, and a file for each result: `node piscina.js FOLDER`. It resumes. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { URL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import PQueue from 'p-queue';
import { Piscina } from 'piscina';
import { nearest } from './work.js';

const [folder] = process.argv.slice(2);
const worker = new URL('piscina-worker.js', import.meta.url);
const version = await readFile(new URL('work.js', import.meta.url));
const pool = new Piscina({ filename: worker.href, minThreads: 2, maxThreads: 2 });
const queue = new PQueue({ concurrency: 16 });
await mkdir('results', { recursive: true });

/** The result of a call, and what it follows from; from its file when it was made before. */
async function kept(name, args, from) {
  const key = createHash('sha256').update(version).update(`${name} ${from}`).digest('hex');
  const path = join('results', key);
  try {
    return { key, result: deserialize(await readFile(path)) };
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  const result = await pool.run(args, { name });
  await writeFile(`${path}.tmp`, serialize(result));
  await rename(`${path}.tmp`, path);
  return { key, result };
}

const paths = (await readdir(folder)).map((name) => join(folder, name));
const documents = await Promise.allSettled(
  paths.map((path) =>
    queue.add(async () => {
      const changedMs = (await stat(path)).mtimeMs;
      const text = await kept('extract', { path, changedMs }, `${path} ${changedMs}`);
      const { result: vectors } = await kept('embed', text.result, text.key);
      return { title: text.result.title, vectors };
    }),
  ),
);
const good = documents.flatMap(({ value }) => value ?? []);
const vectors = good.map((document) => document.vectors);
const best = good[nearest('signal 7 freight 12 yard', vectors)];
process.stdout.write(`${good.length} of ${paths.length} documents, nearest: ${best.title}\n`);
await pool.destroy();
