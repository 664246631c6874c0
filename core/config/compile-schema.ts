import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Ajv, Options, ValidateFunction } from 'ajv';
import type * as AjvModule from 'ajv';
import type * as FormatsModule from 'ajv-formats';

/** Checks by the id of their schema, as `.config/compile-schemas.mjs` writes them. */
type Compiled = Readonly<Record<string, ValidateFunction>>;

const require = createRequire(import.meta.url);
const compiled = new Map<string, ValidateFunction>();
let optionChecks: Compiled | undefined;
let configCheck: Compiled | undefined;
let compiler: Ajv | undefined;

/** Every problem is reported, and defaults are filled in. */
const OPTIONS: Options = {
  allErrors: true,
  strict: true,
  allowUnionTypes: true,
  useDefaults: true,
  verbose: true,
  strictNumbers: false,
};

/**
 * The check of a configuration, or of options. The build has compiled the schemas that the package ships, so
 * that a start loads no compiler; any other schema, such as that of a third-party plugin, is compiled when it
 * is first used, which takes some milliseconds of CPU. Each schema is compiled at most once in a process.
 * @throws Error when the schema itself is not valid
 */
export function compileSchema(schema: object): ValidateFunction {
  const id = schemaId(schema);
  const known = compiled.get(id);
  if (known !== undefined) return known;
  optionChecks ??= builtAhead(() => require('./compiled-options.cjs') as Compiled) ?? {};
  let check = optionChecks[id];
  if (check === undefined) {
    configCheck ??= builtAhead(() => require('./compiled-config.cjs') as Compiled) ?? {};
    check = configCheck[id] ?? (compiler ??= makeAjv()).compile(schema);
  }
  compiled.set(id, check);
  return check;
}

/** Identifies a schema by its contents: a schema that was changed after the build is compiled anew. */
export function schemaId(schema: object): string {
  return `check_${createHash('sha1').update(JSON.stringify(schema)).digest('hex')}`;
}

/** A compiler with the keywords of {@link CONFIG_SCHEMA}. `code` are ajv's options for generated code. */
export function makeAjv(code: Options['code'] = {}): Ajv {
  const { Ajv: AjvClass, _ } = require('ajv') as typeof AjvModule;
  const ajv = new AjvClass({ ...OPTIONS, code });
  (require('ajv-formats') as typeof FormatsModule).default.default(ajv);
  addBytesKeyword(ajv);
  ajv.addKeyword({ keyword: 'unit', schemaType: 'string' });
  ajv.addKeyword({ keyword: 'infinite', schemaType: 'boolean' });
  ajv.addKeyword({
    keyword: 'extension',
    schemaType: 'boolean',
    error: { message: 'must pass "extension" keyword validation' },
    code: (context) => {
      const { data } = context;
      const isObject = _`typeof ${data} === "object" && ${data} !== null && !Array.isArray(${data})`;
      context.pass(
        _`typeof ${data} === "string" ? ${data} !== "" : typeof ${data} === "function" || (${isObject})`,
      );
    },
  });
  return ajv;
}

/** The keyword `bytes`: the value is a `Uint8Array`. */
export function addBytesKeyword(ajv: Ajv): void {
  const { _ } = require('ajv') as typeof AjvModule;
  ajv.addKeyword({
    keyword: 'bytes',
    schemaType: 'boolean',
    error: { message: 'must be bytes' },
    code: (context) => context.pass(_`${context.data} instanceof Uint8Array`),
  });
}

/** Loads what the build has written; undefined where the sources run without a build. */
export function builtAhead<T>(load: () => T): T | undefined {
  try {
    return load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    return undefined;
  }
}
