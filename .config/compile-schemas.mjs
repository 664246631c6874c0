/**
 * Compiles the schemas of messages, so that nothing is compiled when a scheduler starts, and publishes them and the schema
 * of the configuration for readers of other languages and for editors. Part of `npm run build`; reads and writes `dist`.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath, URL } from 'node:url';
import standalone from 'ajv/dist/standalone/index.js';
import { transformSync } from 'esbuild';
import { configuration } from '../dist/adapters/app/config.js';
import { compilerOf } from '../dist/core/scheduler-host/message-checks.js';

const MESSAGES = new URL('../core/messages/messages.schema.json', import.meta.url);
const COMPILED = new URL('../dist/core/scheduler-host/compiled-messages.cjs', import.meta.url);
const PUBLISHED = new URL('../dist/schema/', import.meta.url);

/** Generated code contains its schema, which needs no descriptions there. */
const undescribed = (key, value) =>
  key === 'description' && typeof value === 'string' ? undefined : value;

mkdirSync(PUBLISHED, { recursive: true });
copyFileSync(MESSAGES, new URL('messages.schema.json', PUBLISHED));
writeFileSync(new URL('config.schema.json', PUBLISHED), JSON.stringify(configuration.schema));

const { ajv, refs } = compilerOf(JSON.parse(readFileSync(MESSAGES, 'utf8'), undescribed), {
  source: true,
});
const { code } = transformSync(standalone.default(ajv, refs), { minify: true, format: 'cjs' });
writeFileSync(fileURLToPath(COMPILED), code);
