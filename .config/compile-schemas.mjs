/**
 * Compiles the schemas of messages, of the configuration, and of the options of everything built in, so that
 * nothing is compiled when a scheduler starts. Part of `npm run build`; reads and writes `dist`.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import standalone from 'ajv/dist/standalone/index.js';
import { forAjv } from '../dist/core/config/check.js';
import { makeAjv, schemaId } from '../dist/core/config/compile-schema.js';
import { CONFIG_SCHEMA } from '../dist/core/config/schema.js';
import { MESSAGE_SCHEMAS } from '../dist/core/messages/message-schemas.js';
import { builtins } from '../dist/adapters/app/builtin-extensions.js';

/** The options of an extension: of a definition, or static of a class. */
async function optionSchemas() {
  const loaded = await Promise.all(Object.values(builtins).map((load) => load()));
  return loaded
    .map((extension) => extension?.optionsSchema)
    .filter((schema) => schema !== undefined);
}

function compile(use, schemas) {
  const ajv = makeAjv(use, { source: true, lines: true });
  const names = {};
  for (const schema of schemas) {
    const id = schemaId(schema);
    if (names[id] === undefined) ajv.addSchema(schema, id);
    names[id] = id;
  }
  const file = fileURLToPath(import.meta.resolve(`../dist/core/config/compiled-${use}.cjs`));
  writeFileSync(file, standalone.default(ajv, names));
}

compile('message', MESSAGE_SCHEMAS);
compile('options', [CONFIG_SCHEMA, ...(await optionSchemas())].map(forAjv));
