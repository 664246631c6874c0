/** `node plain.js`: the same with a pool of threads and a folder. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Piscina } from 'piscina';
import { importsOf } from './compiler.js';

const pool = new Piscina({ filename: new URL('compiler.js', import.meta.url).href });
const version = readFileSync(new URL('compiler.js', import.meta.url));
const units = new Map();
let compiled = 0;
for (const folder of ['cache', 'out']) mkdirSync(folder, { recursive: true });
const build = (name) => units.get(name) ?? units.set(name, unit(name)).get(name);
async function unit(name) {
  const source = readFileSync(`src/${name}.ts`, 'utf8');
  const inputs = await Promise.all(importsOf(source).map(build));
  const hash = createHash('sha256').update(version).update(source);
  for (const { key } of inputs) hash.update(key);
  const key = hash.digest('hex');
  if (!existsSync(`cache/${key}`)) {
    compiled++;
    const declared = await pool.run({ name, source }, { name: 'declare' });
    const types = Object.fromEntries(inputs.map(({ name, declared }) => [name, declared]));
    const output = await pool.run({ name, source, types }, { name: 'compile' });
    writeFileSync(`cache/${key}`, JSON.stringify({ name, declared, output }));
  }
  const kept = JSON.parse(readFileSync(`cache/${key}`, 'utf8'));
  writeFileSync(`out/${name}.js`, kept.output);
  return { ...kept, key };
}
const names = readdirSync('src').map((file) => file.slice(0, -3));
await Promise.all(names.map(build));
console.log(`${compiled} of ${names.length} units compiled`);
await pool.destroy();
