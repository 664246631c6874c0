/**
 * The form of every message that comes from outside. Fields that are not listed pass: a newer peer
 * may say more. What is listed is relied upon by the kernel, which checks nothing again.
 */
const text = { type: 'string' };
const key = { type: 'string', minLength: 1 };
const keys = { type: 'array', items: key };
const texts = { type: 'array', items: text };
const finite = { type: 'number', minimum: -Number.MAX_VALUE, maximum: Number.MAX_VALUE };
/** Bytes: sums of them have to stay numbers. */
const size = { ...finite, minimum: 0 };
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
    threadCount: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
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
  nbytes: { type: 'array', items: size },
  types: texts,
});
const graphTask = object(
  { key, dependencies: keys },
  {
    rank: { type: 'number' },
    userPriority: finite,
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
export const WORKER_REPORTS: Readonly<Record<string, object>> = {
  'task-finished': object({ key, runId, type: text, timings }, { nbytes: size, metadata: record }),
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
export const CLIENT_REPORTS: Readonly<Record<string, object>> = {
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
    { keys, userPriorities: { type: 'array', items: finite } },
    { raiseInputs: { type: 'boolean' } },
  ),
  'update-data': object({
    items: {
      type: 'array',
      items: object(
        { key, workers: texts },
        {
          nbytes: size,
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
export const REQUESTS: Readonly<Record<string, object>> = {
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

const placements = {
  type: 'array',
  items: object({ worker: key, keys }),
};

/** Stimuli that no peer sends as a message: they come from the host and from plugins. By `op`. */
export const OWN_STIMULI: Readonly<Record<string, object>> = {
  'register-worker': object({ identity, status }, { metrics, held }),
  'remove-worker': object(
    { worker: key, expected: { type: 'boolean' }, close: { type: 'boolean' } },
    { restart: { type: 'boolean' } },
  ),
  'register-client': object({ client: key }, { versions: record }),
  'remove-client': object({ client: key }),
  'move-replicas': object({ acquire: placements, remove: placements }),
  'want-replicas': object({ keys, replicas: { type: 'number', minimum: 1 } }),
  'set-worker-status': object({
    worker: key,
    status: { type: 'string', enum: ['running', 'paused', 'closing-gracefully'] },
  }),
  'steal-tasks': object(
    {
      wishes: {
        type: 'array',
        items: object({ key, victim: key, thief: key, victimS: finite, thiefS: finite }),
      },
    },
    { victims: texts },
  ),
  'set-restrictions': object({
    changes: {
      type: 'array',
      items: object({ key }, { workers: texts, isQueueable: { type: 'boolean' } }),
    },
  }),
  'release-tasks': object({ keys }),
  'continue-graph': object({}),
  'continue-settling': object({}),
  'policies-replaced': object({}),
  'workers-lost': object({ workers: texts }),
  'scheduler-stalled': object({ stalledMs: { ...finite, minimum: 0 } }),
  'check-worker-ttl': object({}),
  'check-no-workers-timeout': object({}),
  restart: object({}),
};

/** What a plugin may say about how a graph is taken in, beside what clients say. */
export const GRAPH_SLICES = object({}, { sliceTasks: { type: 'integer', minimum: 1 } });

/** Every schema of this file, for the build to compile. */
export const MESSAGE_SCHEMAS: readonly object[] = [
  GRAPH_SLICES,
  ...[WORKER_REPORTS, CLIENT_REPORTS, REQUESTS, OWN_STIMULI].flatMap((schemas) =>
    Object.values(schemas),
  ),
];
