/** `node yardmaster.js FOLDER OUT`. Inline, because sharp has threads of its own. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { URL } from 'node:url';
import { defineTasks, LocalCluster } from 'yardmaster';
import * as work from './work.js';

const tasks = defineTasks(new URL('work.js', import.meta.url), work);
const [folder, out] = process.argv.slice(2);
const names = (await readdir(folder)).sort();
const cluster = await LocalCluster.start({ mode: 'inline' });
const client = await cluster.client();
const paths = names.map((name) => join(folder, name));
const thumbnails = client.map(tasks.thumbnailOf, paths);
const clusters = await client
  .submit(tasks.clustersOf, client.map(tasks.hashOf, thumbnails))
  .result();
const groups = clusters.map((members) => members.map((member) => thumbnails[member]));
const sheets = await client.gather(client.map(tasks.sheetOf, groups));
for (const [index, sheet] of sheets.entries()) await writeFile(join(out, `${index}.jpg`), sheet);
process.stdout.write(`${names.length} pictures, ${clusters.length} clusters\n`);
await cluster.close();
