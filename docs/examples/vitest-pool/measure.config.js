/** The configuration that is measured, with the pool. */
import process from 'node:process';
import { loadConfigFromFile, mergeConfig } from 'vite';
import { yardmasterPool } from './pool/pool.js';

const env = { command: 'serve', mode: 'test' };
const loaded = await loadConfigFromFile(env, process.env.MEASURED_CONFIG);
const workers = Number(process.env.WORKERS);
export default mergeConfig(loaded.config, {
  test: { pool: yardmasterPool({ cluster: { workers: 1, threads: workers } }), maxWorkers: 10_000 },
});
