/**
 * `node measure.js [--config FILE] [--rounds 3] [--workers 2] [FILTER…]`: seconds that a suite takes in the pool, with
 * Vitest's own, and in as many static shards. Without `--config`, the suite is twelve files, of which one is long.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HERE = dirname(fileURLToPath(import.meta.url));
const VITEST = join(
  dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
  'vitest.mjs',
);

const { values, positionals } = parseArgs({
  options: {
    config: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
  },
  allowPositionals: true,
});
const config = values.config === undefined ? madeSuite() : resolve(values.config);
const workers = Number(values.workers);

const ways = {
  'vitest run': () => vitest(config, `--maxWorkers=${workers}`),
  'static shards': () => {
    const shards = Array.from({ length: workers }, (_, shard) => {
      return vitest(config, '--maxWorkers=1', `--shard=${shard + 1}/${workers}`);
    });
    return Promise.all(shards);
  },
  'the pool': () => vitest(join(HERE, 'measure.config.js')),
};
const taken = new Map(Object.keys(ways).map((name) => [name, []]));
await ways['the pool'](); // learns the durations, as Vitest itself does
await ways['vitest run']();
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, run] of Object.entries(ways)) {
    const startMs = performance.now();
    await run();
    taken.get(name).push(performance.now() - startMs);
  }
}
for (const [name, times] of taken) {
  const [median] = times.sort((a, b) => a - b).slice(Math.floor(times.length / 2));
  process.stdout.write(`${name}: ${(median / 1000).toFixed(1)} s\n`);
}

async function vitest(path, ...options) {
  const args = [VITEST, 'run', '--config', path, '--reporter=dot', ...options, ...positionals];
  const env = { ...process.env, MEASURED_CONFIG: config, WORKERS: String(workers) };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.stderr.write(`the suite failed: ${args.slice(1).join(' ')}\n`);
}

/** Waits instead of computing: what is compared is who runs what when. */
function madeSuite() {
  const folder = join(HERE, 'node_modules/.cache/measured-suite');
  mkdirSync(folder, { recursive: true });
  for (let file = 0; file < 12; file++) {
    const ms = file === 11 ? 3000 : 100 * (1 + (file % 5));
    const source = `import { test } from 'vitest';
test('waits', () => new Promise((resolve) => setTimeout(resolve, ${ms})));\n`;
    writeFileSync(join(folder, `file-${file}.test.js`), source);
  }
  const path = join(folder, 'vitest.config.js');
  writeFileSync(path, `export default { root: ${JSON.stringify(folder)}, test: {} };\n`);
  return path;
}
