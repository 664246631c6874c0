/** `node yardmaster.js FOLDER`. It resumes. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { URL } from 'node:url';
import { defineTasks, LocalCluster } from 'yardmaster';
import * as work from './work.js';

const tasks = defineTasks(new URL('work.js', import.meta.url), work);
const [folder] = process.argv.slice(2);
const paths = (await readdir(folder)).map((name) => join(folder, name));
const times = await Promise.all(paths.map(async (path) => (await stat(path)).mtimeMs));
const cluster = await LocalCluster.start({ mode: 'threads', workers: 2 });
const client = await cluster.client({ resultStore: 'results' });
const kept = client.with({ persist: true });
const texts = kept.map(tasks.extract, paths, times);
const vectors = await client.gather(kept.map(tasks.embed, texts), { errors: 'skip' });
const good = texts.filter(({ status }) => status === 'finished');
const best = await good[work.nearest('signal 7 freight 12 yard', vectors)].result();
process.stdout.write(`${vectors.length} of ${paths.length} documents, nearest: ${best.title}\n`);
await cluster.close();
