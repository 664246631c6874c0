/** `node main.js`: compiles what has changed in `src`, and says what and why. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { defineTasks, LocalCluster, ref, task } from 'yardmaster';
import * as compiler from './compiler.js';

const { declare, compile } = defineTasks(new URL('compiler.js', import.meta.url), compiler);
const cluster = await LocalCluster.start();
const client = await cluster.client({ resultStore: 'kept' });
const graph = {};
for (const file of readdirSync('src')) {
  const name = file.slice(0, -3);
  const source = readFileSync(`src/${file}`, 'utf8');
  const imports = compiler.importsOf(source).map((other) => [other, ref(`types of ${other}`)]);
  const types = Object.fromEntries(imports);
  graph[`types of ${name}`] = task(declare, { name, source }).with({ contentKey: 'result' });
  graph[name] = task(compile, { name, source, types });
}
const units = Object.keys(graph).filter((name) => !name.startsWith('types'));
const outputs = await client.gather(client.with({ persist: true }).compute(graph, units));
mkdirSync('out', { recursive: true });
for (const [at, unit] of units.entries()) writeFileSync(`out/${unit}.js`, outputs[at]);
const compiled = (await client.explain(units)).filter(({ isComputed }) => isComputed);
for (const { key, because, changed } of compiled) console.log(key, because, ...changed);
console.log(`${compiled.length} of ${units.length} units compiled`);
await cluster.close();
