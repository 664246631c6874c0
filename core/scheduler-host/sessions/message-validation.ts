import type { ErrorObject, ValidateFunction } from 'ajv';
import { YardmasterError } from '../../api/errors.ts';
import type { WireMessage } from '../../api/transport.ts';
import { compileSchema } from '../../config/compile-schema.ts';
import { pathText, show, hint } from '../../config/errors.ts';
import { isPlainObject } from '../../config/prepare.ts';
import { violation } from './protocol-errors.ts';
import {
  CLIENT_REPORTS,
  GRAPH_SLICES,
  OWN_STIMULI,
  REQUESTS,
  WORKER_REPORTS,
} from '../../messages/message-schemas.ts';
import {
  isClientReleasesKeys,
  isPlainGraph,
  isReleaseWorkerData,
  isTaskFinished,
} from './quick-checks.ts';

const checks = new Map<string, ValidateFunction>();

/**
 * What every message has, whoever sends it.
 * @throws YardmasterError `ERR_PROTOCOL`
 */
export function checkEnvelope(message: unknown): void {
  if (!isPlainObject(message)) throw violation('a message that is not an object');
  const { op } = message;
  if (typeof op !== 'string') throw violation('a message without op');
  if (op !== 'request' && op !== 'reply') return;
  if (!Number.isSafeInteger(message['id'])) throw violation(`a ${op} whose id is not a number`);
  if (op === 'request' && !isPlainObject(message['parameters'] ?? {})) {
    throw violation('a request whose parameters are not an object');
  }
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function checkWorkerReport(message: WireMessage): void {
  if (!isTaskFinished(message) && !isReleaseWorkerData(message)) {
    checkBySchema('worker', message);
  }
  const { op, value } = message;
  if (op === 'task-finished' && value !== undefined && !(value instanceof Uint8Array)) {
    throw broken(`worker message ${op}`, 'value', 'must be bytes', value);
  }
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function checkClientReport(message: WireMessage): void {
  if (isPlainGraph(message) || isClientReleasesKeys(message)) return;
  checkBySchema('client', message);
}

/** @throws YardmasterError `ERR_PROTOCOL` naming the field, or the method when there is none such */
export function checkRequest(method: unknown, parameters: unknown): void {
  if (typeof method !== 'string' || !Object.hasOwn(REQUESTS, method)) {
    throw unknown('request', method, Object.keys(REQUESTS));
  }
  validate(`request ${method}`, REQUESTS[method] as object, parameters);
}

/**
 * The full check of a report, which says what is wrong.
 * @throws YardmasterError `ERR_PROTOCOL` naming the field
 */
export function checkBySchema(from: 'worker' | 'client', message: WireMessage): void {
  const schemas = from === 'worker' ? WORKER_REPORTS : CLIENT_REPORTS;
  const { op } = message;
  if (typeof op !== 'string' || !Object.hasOwn(schemas, op)) {
    throw unknown(`message of a ${from}`, op, Object.keys(schemas));
  }
  validate(`${from} message ${op}`, schemas[op] as object, message);
  const { stimulusId } = message;
  if (stimulusId !== undefined && typeof stimulusId !== 'string') {
    throw broken(`${from} message ${op}`, 'stimulusId', 'must be string', stimulusId);
  }
}

/** Reports of workers that need not tell of which worker they are. */
const WORKER_OPTIONAL: ReadonlySet<string> = new Set(['reschedule', 'log-event']);

/**
 * A stimulus that comes from a plugin, or from the program around the scheduler: what is not of this form
 * would end the kernel, which checks nothing again.
 * @throws YardmasterError `ERR_PROTOCOL` naming the field
 */
export function checkStimulus(stimulus: unknown): void {
  if (typeof stimulus !== 'object' || stimulus === null) {
    throw broken('stimulus', 'stimulus', 'must be an object', stimulus);
  }
  const fields = stimulus as Readonly<Record<string, unknown>>;
  const { op, stimulusId } = fields;
  const isOf = (table: Readonly<Record<string, object>>): boolean =>
    typeof op === 'string' && Object.hasOwn(table, op) && op !== 'graph-part';
  const table = [OWN_STIMULI, WORKER_REPORTS, CLIENT_REPORTS].find(isOf);
  if (typeof op !== 'string' || table === undefined) {
    throw unknown('stimulus', op, stimulusNames());
  }
  const name = `stimulus ${op}`;
  validate(name, table[op] as object, stimulus);
  if (op === 'update-graph') validate(`${name} in slices`, GRAPH_SLICES, stimulus);
  if (stimulusId !== undefined && typeof stimulusId !== 'string') {
    throw broken(name, 'stimulusId', 'must be string', stimulusId);
  }
  if (table === OWN_STIMULI) return;
  const sender = table === WORKER_REPORTS ? 'worker' : 'client';
  const said = fields[sender];
  if (said === undefined && WORKER_OPTIONAL.has(op)) return;
  if (typeof said !== 'string' || said === '') {
    throw broken(name, sender, said === undefined ? 'is missing' : 'must be a name', said);
  }
}

function stimulusNames(): string[] {
  const names = [OWN_STIMULI, WORKER_REPORTS, CLIENT_REPORTS].flatMap((table) => {
    return Object.keys(table);
  });
  return names.filter((name) => name !== 'graph-part');
}

function validate(name: string, schema: object, value: unknown): void {
  let check = checks.get(name);
  if (check === undefined) {
    check = compileSchema('message', schema);
    checks.set(name, check);
  }
  if (check(value)) return;
  const [error] = check.errors as [ErrorObject];
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  if (error.keyword === 'required') {
    const missing = (error.params as { missingProperty: string }).missingProperty;
    throw broken(name, pathText([...path, missing]), 'is missing', undefined);
  }
  const allowed = (error.params as { allowedValues?: readonly string[] }).allowedValues;
  const what = allowed === undefined ? error.message : `must be one of ${allowed.join(', ')}`;
  throw broken(name, pathText(path), what ?? 'is wrong', error.data);
}

function unknown(what: string, op: unknown, known: readonly string[]): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `${show(op)} is not a ${what}${typeof op === 'string' ? hint(op, known) : ''}`,
    { op, field: 'op' },
  );
}

function broken(name: string, field: string, what: string, got: unknown): YardmasterError {
  const shown = got === undefined ? '' : ` (got ${show(got)})`;
  return new YardmasterError('ERR_PROTOCOL', `${name}: ${field} ${what}${shown}`, {
    message: name,
    field,
  });
}
