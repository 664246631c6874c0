/**
 * Compiles the schemas of messages, of the configuration, and of the options and commands of everything built in, so that
 * nothing is compiled when a scheduler starts, and publishes those of messages and the configuration for readers of
 * other languages and for editors. Part of `npm run build`; reads and writes `dist`.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath, URL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import standalone from 'ajv/dist/standalone/index.js';
import { transformSync } from 'esbuild';
import { check, forAjv } from '../dist/core/config/check.js';
import { makeAjv, schemaId } from '../dist/core/config/compile-schema.js';
import { CONFIG_SCHEMA } from '../dist/core/config/schema.js';
import { BUILTIN_COMMANDS } from '../dist/core/scheduler-host/commands.js';
import { compilerOf } from '../dist/core/scheduler-host/message-checks.js';
import { REPORT_PARAMETERS } from '../dist/adapters/report/plugin.js';
import { builtins } from '../dist/adapters/app/builtin-extensions.js';
import { MOVEMENT_PARAMETERS } from '../dist/plugins/amm/commands.js';
import { MANAGER_PARAMETERS } from '../dist/plugins/amm/commands.js';
import { COORDINATION_PARAMETERS } from '../dist/plugins/coordination/commands.js';

const MESSAGES = new URL('../core/messages/messages.schema.json', import.meta.url);
const PUBLISHED = new URL('../dist/schema/', import.meta.url);
const CODE = { source: true };

/** The options of an extension: of a definition, or static of a class. */
async function optionSchemas() {
  const loaded = await Promise.all(Object.values(builtins).map((load) => load()));
  return loaded
    .map((extension) => extension?.optionsSchema)
    .filter((schema) => schema !== undefined);
}

function write(path, ajv, names) {
  const file = fileURLToPath(new URL(`../dist/core/${path}`, import.meta.url));
  const { code } = transformSync(standalone.default(ajv, names), { minify: true, format: 'cjs' });
  writeFileSync(file, code);
}

/** Generated code contains its schema, which needs no descriptions there. */
const undescribed = (key, value) =>
  key === 'description' && typeof value === 'string' ? undefined : value;

mkdirSync(PUBLISHED, { recursive: true });
copyFileSync(MESSAGES, new URL('messages.schema.json', PUBLISHED));
writeFileSync(new URL('config.schema.json', PUBLISHED), JSON.stringify(CONFIG_SCHEMA));

const messages = compilerOf(JSON.parse(readFileSync(MESSAGES, 'utf8'), undescribed), CODE);
write('scheduler-host/compiled-messages.cjs', messages.ajv, messages.refs);

const ajv = makeAjv(CODE);
const names = {};
const commands = [
  Object.fromEntries(
    Object.entries(BUILTIN_COMMANDS).map(([name, { parameters }]) => [name, parameters]),
  ),
  MOVEMENT_PARAMETERS,
  MANAGER_PARAMETERS,
  COORDINATION_PARAMETERS,
  REPORT_PARAMETERS,
].flatMap((declared) => Object.values(declared));
for (const schema of [...(await optionSchemas()), ...commands].map(forAjv)) {
  const id = schemaId(schema);
  if (names[id] === undefined) ajv.addSchema(schema, id);
  names[id] = id;
}
write('config/compiled-options.cjs', ajv, names);

// Large, and a start without a configuration does not load it: what it would say stands in a file of its own.
const configSchema = forAjv(CONFIG_SCHEMA);
const configId = schemaId(configSchema);
ajv.addSchema(configSchema, configId);
write('config/compiled-config.cjs', ajv, { [configId]: configId });

const { value: defaults } = check(CONFIG_SCHEMA, {});
const literal = JSON.stringify(defaults, (_, value) => (value === Infinity ? '∞' : value));
const code = `module.exports = () => (${literal.replaceAll('"∞"', 'Infinity')});\n`;
if (!isDeepStrictEqual(new Function(code.replace('module.exports =', 'return'))()(), defaults)) {
  throw new Error('the defaults of the configuration cannot be written as a literal');
}
writeFileSync(
  fileURLToPath(new URL('../dist/core/config/compiled-defaults.cjs', import.meta.url)),
  code,
);
