/** `node main.js`: counts words, and reads the counts from a compressed store when it is run again. */
import process from 'node:process';
import { LocalCluster } from 'yardmaster';
import { count, countAll } from './tasks.js';

const resultStore = { use: './brotli-store.js', options: { folder: 'results' } };
const cluster = await LocalCluster.start({ workers: 1, resultStore });
const client = await cluster.client();
const texts = ['one', 'one two', 'one two three'].map((text) => `${text} `.repeat(100));
const counted = await client.with({ persist: true }).submit(count, texts[0]).result();
const all = await client.submit(countAll, texts).result();
process.stdout.write(`${counted.words} ${all.join(' ')}\n`);
await cluster.close();
