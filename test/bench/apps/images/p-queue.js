/** p-queue and sharp's own threads: `node p-queue.js FOLDER OUT`. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import PQueue from 'p-queue';
import { clustersOf, hashOf, sheetOf, thumbnailOf } from './work.js';

const [folder, out] = process.argv.slice(2);
const names = (await readdir(folder)).sort();
const queue = new PQueue({ concurrency: 2 });
const pictures = await queue.addAll(
  names.map((name) => async () => {
    const thumbnail = await thumbnailOf(join(folder, name));
    return { thumbnail, hash: await hashOf(thumbnail) };
  }),
);
const clusters = clustersOf(pictures.map(({ hash }) => hash));
await queue.addAll(
  clusters.map((members, index) => async () => {
    const sheet = await sheetOf(members.map((member) => pictures[member].thumbnail));
    await writeFile(join(out, `${index}.jpg`), sheet);
  }),
);
process.stdout.write(`${names.length} pictures, ${clusters.length} clusters\n`);
