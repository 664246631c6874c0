import { createRequire } from 'node:module';
import type * as AjvModule from 'ajv';
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import { YardmasterError } from '../api/errors.ts';
import { VERSION } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import { violation } from '../host/sending.ts';
import { PROTOCOL } from '../messages/protocol.ts';
import { pathText } from '../shared/schema.ts';
import { hint, show } from '../shared/words.ts';
import { isPlainObject } from '../util/values.ts';

type Check = ValidateFunction;

/** The place of the schema of a message in `core/messages/messages.schema.json`. */
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
  const { Ajv: AjvClass, _ } = require('ajv') as typeof AjvModule;
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
  ajv.addKeyword({
    keyword: 'bytes',
    schemaType: 'boolean',
    error: { message: 'must be bytes' },
    code: (context) => context.pass(_`${context.data} instanceof Uint8Array`),
  });
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
  const { ajv, refs } = compilerOf(require('../messages/messages.schema.json') as MessageSchemas);
  const check = (name: string): Check => ajv.getSchema(refs[name] as string) as Check;
  return { names: Object.keys(refs), check };
}

/** The kind of what is checked: messages by `op`, requests by method. */
type Kind = 'worker message' | 'client message' | 'request' | 'stimulus';

const known: Readonly<Record<Kind, Map<unknown, ValidateFunction>>> = {
  'worker message': new Map(),
  'client message': new Map(),
  request: new Map(),
  stimulus: new Map(),
};

/**
 * Checks what every message has, whatever its sender. Returns whether it is a request or an answer.
 * @throws YardmasterError `ERR_PROTOCOL`
 */
export function isPartOfRequest(message: unknown): boolean {
  if (!isPlainObject(message)) throw violation('a message that is not an object');
  const { op } = message;
  if (typeof op !== 'string') throw violation('a message without op');
  if (op !== 'request' && op !== 'reply') return false;
  if (!Number.isSafeInteger(message['id'])) throw violation(`a ${op} whose id is not a number`);
  if (op === 'request' && !isPlainObject(message['parameters'] ?? {})) {
    throw violation('a request whose parameters are not an object');
  }
  return true;
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function checkWorkerReport(message: WireMessage): void {
  validate('worker message', message['op'], message);
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function checkClientReport(message: WireMessage): void {
  validate('client message', message['op'], message);
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field, or the method when it does not exist */
export function checkRequest(method: unknown, parameters: unknown): void {
  validate('request', method, parameters);
}

/**
 * Checks a stimulus of a plugin, or of the program around the scheduler. The kernel checks nothing again, so
 * that another form would end it.
 * @throws YardmasterError `ERR_PROTOCOL` naming the field
 */
export function checkStimulus(stimulus: unknown): void {
  if (typeof stimulus !== 'object' || stimulus === null) {
    throw broken('stimulus', 'stimulus', 'must be an object', stimulus);
  }
  const { op } = stimulus as WireMessage;
  validate('stimulus', op, stimulus);
  for (const kind of ['worker message', 'client message'] as const) {
    if (messageNames().includes(`${kind} ${String(op)}`)) validate(kind, op, stimulus, 'stimulus');
  }
}

/** @param sort - what the message is called in errors */
function validate(kind: Kind, op: unknown, value: unknown, sort: Kind = kind): void {
  const check = known[kind].get(op) ?? findCheck(kind, op);
  if (check(value)) return;
  const [error] = check.errors as [ErrorObject];
  const name = `${sort} ${String(op)}`;
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  if (error.keyword === 'required') {
    const missing = (error.params as { missingProperty: string }).missingProperty;
    throw broken(name, pathText([...path, missing]), 'is missing', undefined);
  }
  const allowed = (error.params as { allowedValues?: readonly string[] }).allowedValues;
  const what = allowed === undefined ? error.message : `must be one of ${allowed.join(', ')}`;
  // Errors are logged and shown, secrets are not.
  const isSecret = path.at(-1) === 'secret';
  const got = path.reduce<unknown>((part, at) => (part as WireMessage)[at], value);
  throw broken(name, pathText(path), what ?? 'is wrong', isSecret ? undefined : got);
}

/** @throws YardmasterError `ERR_PROTOCOL` when there is no such message */
function findCheck(kind: Kind, op: unknown): ValidateFunction {
  const names = messageNames();
  if (typeof op !== 'string' || !names.includes(`${kind} ${op}`)) {
    const ofKind = names.filter((name) => name.startsWith(`${kind} `));
    const known = ofKind.map((name) => name.slice(kind.length + 1));
    const near = typeof op === 'string' ? hint(op, known) : '';
    const what = kind.replace(/^(\w+) message$/, 'message of a $1');
    throw new YardmasterError('ERR_PROTOCOL', `${show(op)} is not a ${what}${near}`, {
      op: show(op),
      field: 'op',
    });
  }
  const check = messageCheck(`${kind} ${op}`);
  known[kind].set(op, check);
  return check;
}

function broken(name: string, field: string, what: string, got: unknown): YardmasterError {
  const shown = got === undefined ? '' : ` (got ${show(got)})`;
  return new YardmasterError('ERR_PROTOCOL', `${name}: ${field} ${what}${shown}`, {
    message: name,
    field,
  });
}

/** Errors of a connection that say the peer is wrong, and not merely gone. */
const BREACHES = ['ERR_PROTOCOL', 'ERR_FRAME'];

export function isBreach(error: Error | undefined): error is YardmasterError {
  return YardmasterError.is(error) && BREACHES.includes(error.code);
}

export function otherProtocol(peer: string, protocol: string, version: string): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `${peer} speaks ${protocol} (version ${version}), this scheduler ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
    { field: 'protocol', theirs: protocol, ours: PROTOCOL },
  );
}

/** The error that is reported for a connection which the scheduler closes because of a message. */
export function closedOn(peer: string, cause: unknown): YardmasterError {
  const closed = `closed the connection to ${peer}`;
  if (YardmasterError.is(cause, 'ERR_PROTOCOL')) {
    const data = { ...cause.data, peer };
    return new YardmasterError('ERR_PROTOCOL', `${closed}: ${cause.message}`, data, { cause });
  }
  const message = `${closed}, whose message could not be handled: ${String(cause)}`;
  return new YardmasterError('ERR_PROTOCOL', message, { peer }, { cause });
}
