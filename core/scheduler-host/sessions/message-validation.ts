import type { ErrorObject, ValidateFunction } from 'ajv';
import { YardmasterError } from '../../api/errors.ts';
import type { WireMessage } from '../../api/transport.ts';
import { pathText } from '../../config/errors.ts';
import { hint, show } from '../../shared/words.ts';
import { isPlainObject } from '../../util/plain-object.ts';
import { messageCheck, messageNames } from './message-checks.ts';
import { violation } from './protocol-errors.ts';

/** What is checked: messages by `op`, requests by method. */
type Kind = 'worker message' | 'client message' | 'request' | 'stimulus';

const checks: Readonly<Record<Kind, Map<unknown, ValidateFunction>>> = {
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
  const check = checks[kind].get(op) ?? findCheck(kind, op);
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
  checks[kind].set(op, check);
  return check;
}

function broken(name: string, field: string, what: string, got: unknown): YardmasterError {
  const shown = got === undefined ? '' : ` (got ${show(got)})`;
  return new YardmasterError('ERR_PROTOCOL', `${name}: ${field} ${what}${shown}`, {
    message: name,
    field,
  });
}
