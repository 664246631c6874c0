import type { ErrorObject, ValidateFunction } from 'ajv';
import { YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import { compileSchema } from '../config/compile-schema.ts';
import { pathText, show, hint } from '../config/errors.ts';
import { isPlainObject } from '../config/prepare.ts';
import { violation } from './breaches.ts';
import {
  isClientReleasesKeys,
  isPlainGraph,
  isReleaseWorkerData,
  isTaskFinished,
} from './quick-checks.ts';

/**
 * The form of every message that comes from outside. Fields that are not listed pass: a newer peer
 * may say more. What is listed is relied upon by the kernel, which checks nothing again.
 */
const text = { type: 'string' };
const key = { type: 'string', minLength: 1 };
const keys = { type: 'array', items: key };
const texts = { type: 'array', items: text };
const count = { type: 'integer', minimum: 0 };
const amount = { type: 'number', minimum: 0 };
const amounts = { type: 'object', additionalProperties: amount };
const runId = { type: 'integer' };
const record = { type: 'object' };
const status = {
  type: 'string',
  enum: ['running', 'paused', 'closing-gracefully', 'closing', 'closed'],
};

const object = (
  required: Readonly<Record<string, object>>,
  optional: Readonly<Record<string, object>> = {},
): object => ({
  type: 'object',
  required: Object.keys(required),
  properties: { ...required, ...optional },
});

const timings = {
  type: 'array',
  items: object({ action: text, startS: { type: 'number' }, stopS: { type: 'number' } }),
};
const metrics = object(
  {
    memoryBytes: amount,
    spilledMemoryBytes: amount,
    spilledDiskBytes: amount,
    managedBytes: amount,
  },
  { bandwidth: amount, cpuPercent: amount },
);
const failure = object({ exceptionText: text, tracebackText: text });
const identity = object(
  {
    address: key,
    serverId: key,
    name: key,
    host: key,
    threadCount: { type: 'integer', minimum: 1 },
    memoryLimitBytes: amount,
    resources: amounts,
  },
  {
    language: key,
    pid: { type: 'integer' },
    nanny: text,
    tellsRunEnds: { type: 'boolean' },
    localDirectory: text,
    versions: record,
    services: record,
    extra: record,
  },
);
const held = object({
  keys,
  runIds: { type: 'array', items: runId },
  nbytes: { type: 'array', items: amount },
  types: texts,
});
const graphTask = object(
  { key, dependencies: keys },
  {
    rank: { type: 'number' },
    userPriority: { type: 'number' },
    retries: count,
    workers: texts,
    hosts: texts,
    allowOtherWorkers: { type: 'boolean' },
    resources: amounts,
    actor: { type: 'boolean' },
    dataProducer: { type: 'boolean' },
    annotations: record,
    group: key,
    prefix: key,
  },
);

/** What workers report, by `op`. */
const WORKER_REPORTS: Readonly<Record<string, object>> = {
  'task-finished': object(
    { key, runId, type: text, timings },
    { nbytes: amount, metadata: record },
  ),
  'task-erred': object({ key, runId, failure }, { timings }),
  reschedule: object({ key }),
  'runs-over': object({ runIds: { type: 'array', items: runId } }),
  'long-running': object({ key, runId }, { computeDurationS: amount }),
  'add-keys': object({ keys }),
  'request-refresh-who-has': object({ keys }),
  'steal-response': object({ keys, runIds: { type: 'array', items: runId }, states: texts }),
  'release-worker-data': object({ keys }),
  'worker-status-change': object({ status }),
  'log-event': object({ topics: texts }),
  'keep-alive': object({}),
  'heartbeat-worker': object(
    {
      metrics,
      executing: {
        type: 'array',
        items: { type: 'array', minItems: 2, maxItems: 2, items: [key, amount] },
      },
      workerNowMs: { type: 'number' },
    },
    { resources: amounts },
  ),
};

/** What clients report, by `op`. */
const CLIENT_REPORTS: Readonly<Record<string, object>> = {
  'update-graph': object(
    { tasks: { type: 'array', items: graphTask }, keys },
    { fifoTimeoutMs: amount, submittingTask: key, parts: count },
  ),
  'graph-part': object({ tasks: { type: 'array', items: graphTask }, keys }),
  'client-desires-keys': object({ keys }),
  'client-releases-keys': object({ keys }),
  'cancel-keys': object(
    { keys, force: { type: 'boolean' } },
    { reason: text, message: text, killTimeoutMs: amount },
  ),
  retry: object({ keys }),
  'set-priority': object(
    { keys, userPriorities: { type: 'array', items: { type: 'number' } } },
    { raiseInputs: { type: 'boolean' } },
  ),
  'update-data': object({
    items: {
      type: 'array',
      items: object(
        { key, workers: texts },
        {
          nbytes: amount,
          type: text,
          fingerprint: text,
          replicas: { type: 'number', minimum: 1 },
        },
      ),
    },
  }),
  'report-key': object({ key }),
  'heartbeat-client': object({}),
};

/** Parameters of requests, by method. */
const REQUESTS: Readonly<Record<string, object>> = {
  hello: object({
    protocol: text,
    role: { type: 'string', enum: ['worker', 'client', 'peer'] },
    version: text,
  }),
  'register-worker': object({ identity, status }, { metrics, held }),
  'register-client': object({ client: key }, { versions: record, returnWithinMs: amount }),
  'who-has': object({ keys }),
  gather: object({ keys }, { inParts: { type: 'boolean' } }),
  'get-part': object({ handle: count, nbytes: { type: 'integer', minimum: 1 } }),
  command: object({ command: key }),
};

/** Every schema of this file, for the build to compile. */
export const MESSAGE_SCHEMAS: readonly object[] = [
  WORKER_REPORTS,
  CLIENT_REPORTS,
  REQUESTS,
].flatMap((schemas) => Object.values(schemas));

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
