import { createRequire } from 'node:module';
import type { Ajv, Options, ValidateFunction } from 'ajv';
import type * as AjvModule from 'ajv';
import { addBytesKeyword } from '../../config/compile-schema.ts';

type Check = ValidateFunction;

/** Where the schema of a message is in `schema/messages.schema.json`. */
interface MessageSchemas {
  readonly definitions: Readonly<Record<string, object>>;
}

const require = createRequire(import.meta.url);
const ID = 'messages';
interface Source {
  readonly names: readonly string[];
  check(name: string): Check;
}

let source: Source | undefined;

/** Names of the messages that a scheduler checks, as errors have them: `worker message task-finished`. */
export function messageNames(): readonly string[] {
  return checks().names;
}

/** The check of a message. The build has compiled it; where the sources run, it is compiled now. */
export function messageCheck(name: string): Check {
  return checks().check(name);
}

/** A compiler that knows the schemas, and where it has each. `code` are ajv's options for generated code. */
export function compilerOf(
  { definitions }: MessageSchemas,
  code: Options['code'] = {},
): { readonly ajv: Ajv; readonly refs: Readonly<Record<string, string>> } {
  const { Ajv: AjvClass } = require('ajv') as typeof AjvModule;
  const ajv = new AjvClass({
    // These schemas are generated, so strictness would find nothing.
    strict: false,
    validateSchema: false,
    validateFormats: false,
    // Minimal lengths count UTF-16 units, which is faster. Deprecated: hence no logger.
    unicode: false,
    logger: false,
    code,
  });
  addBytesKeyword(ajv);
  ajv.addSchema({ definitions }, ID);
  const refs = Object.keys(definitions)
    .filter((name) => name.includes(' '))
    .map((name) => [name, `${ID}#/definitions/${encodeURIComponent(name)}`]);
  return { ajv, refs: Object.fromEntries(refs) as Readonly<Record<string, string>> };
}

function checks(): Source {
  return (source ??= compiledAhead() ?? fromSchemas());
}

function compiledAhead(): Source | undefined {
  try {
    const compiled = require('./compiled-messages.cjs') as Readonly<Record<string, Check>>;
    return { names: Object.keys(compiled), check: (name) => compiled[name] as Check };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    return undefined;
  }
}

function fromSchemas(): Source {
  const { ajv, refs } = compilerOf(
    require('../../../schema/messages.schema.json') as MessageSchemas,
  );
  const check = (name: string): Check => ajv.getSchema(refs[name] as string) as Check;
  return { names: Object.keys(refs), check };
}
