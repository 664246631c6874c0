import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { WireMessage } from '../../../core/api/index.ts';
import { checkBySchema } from '../../../core/scheduler-host/sessions/message-validation.ts';
import {
  isClientReleasesKeys,
  isPlainGraph,
  isReleaseWorkerData,
  isTaskFinished,
} from '../../../core/scheduler-host/sessions/quick-checks.ts';

const sound: WireMessage = {
  op: 'task-finished',
  key: 'x',
  runId: 3,
  nbytes: 8,
  type: 'number',
  timings: [{ action: 'compute', startS: 1, stopS: 2.5 }],
  stimulusId: 'task-finished-1',
};

/** Anything that can stand in a message, the odd ends of numbers and texts above all. */
const anything = fc.oneof(
  fc.constantFrom(undefined, null, '', 'x', 0, -0, -1, 1.5, NaN, Infinity, true, {}, []),
  fc.array(fc.oneof(fc.constant(null), fc.record({ action: fc.string(), startS: fc.double() }))),
  fc.array(fc.record({ action: fc.string(), startS: fc.double(), stopS: fc.double() })),
  fc.anything(),
);
const field = fc.constantFrom(...Object.keys(sound), 'metadata', 'unheardOf');
const changed = fc
  .dictionary(field, anything, { maxKeys: 3, noNullPrototype: true })
  .map((changes): WireMessage => ({
    ...sound,
    ...changes,
    op: 'task-finished',
  }));

function schemaTakes(message: WireMessage): boolean {
  try {
    checkBySchema('worker', message);
    return true;
  } catch {
    return false;
  }
}

it('a report that is taken for sure is one that the schema takes', () => {
  const taken = { count: 0 };
  fc.assert(
    fc.property(changed, (message) => {
      if (!isTaskFinished(message)) return;
      taken.count++;
      expect(schemaTakes(message)).toBe(true);
    }),
    { numRuns: 5000 },
  );
  expect(taken.count).toBeGreaterThan(100);
});

it('an ordinary report is taken for sure', () => {
  const seconds = fc.double({ noNaN: true, noDefaultInfinity: true });
  const ordinary = fc.record({
    key: fc.string({ minLength: 1 }),
    runId: fc.nat(),
    nbytes: fc.nat(),
    type: fc.string(),
    timings: fc.array(fc.record({ action: fc.string(), startS: seconds, stopS: seconds })),
  });
  fc.assert(
    fc.property(ordinary, (fields) => {
      expect(isTaskFinished({ op: 'task-finished', ...fields })).toBe(true);
    }),
  );
});

const key = fc.string({ minLength: 1 });
const keys = fc.oneof({ weight: 9, arbitrary: fc.array(key) }, { weight: 1, arbitrary: anything });
const plainTask = fc.record(
  { key, dependencies: keys, runSpec: fc.anything() },
  { noNullPrototype: true },
);
const oddTask = fc
  .tuple(plainTask, fc.dictionary(taskField(), anything, { maxKeys: 2, noNullPrototype: true }))
  .map(([task, changes]) => ({ ...task, ...changes }));
const graphField = fc.constantFrom(
  ...['tasks', 'keys', 'fifoTimeoutMs', 'submittingTask', 'parts', 'stimulusId', 'unheardOf'],
);

function taskField(): fc.Arbitrary<string> {
  const names = ['rank', 'userPriority', 'retries', 'workers', 'hosts', 'allowOtherWorkers'];
  return fc.constantFrom(...names, 'resources', 'actor', 'annotations', 'group', 'prefix', 'key');
}

const CASES = [
  {
    from: 'client',
    op: 'update-graph',
    isSure: isPlainGraph,
    fields: fc
      .tuple(
        fc.record({
          tasks: fc.array(fc.oneof(plainTask, oddTask), { maxLength: 2 }),
          keys,
        }),
        fc.dictionary(graphField, anything, {
          maxKeys: 2,
          noNullPrototype: true,
        }),
      )
      .map(([graph, changes]) => ({ ...graph, ...changes })),
  },
  {
    from: 'client',
    op: 'client-releases-keys',
    isSure: isClientReleasesKeys,
    fields: fc.record({ keys, stimulusId: anything }, { requiredKeys: [], noNullPrototype: true }),
  },
  {
    from: 'worker',
    op: 'release-worker-data',
    isSure: isReleaseWorkerData,
    fields: fc.record({ keys, stimulusId: anything }, { requiredKeys: [], noNullPrototype: true }),
  },
] as const;

it.each(CASES)('a $op that is taken for sure is one that the schema takes', (each) => {
  const taken = { count: 0 };
  fc.assert(
    fc.property(each.fields as fc.Arbitrary<WireMessage>, (fields) => {
      const message = { ...fields, op: each.op };
      if (!each.isSure(message)) return;
      taken.count++;
      expect(() => checkBySchema(each.from, message)).not.toThrow();
    }),
    { numRuns: 5000 },
  );
  expect(taken.count).toBeGreaterThan(100);
});

it('what a client of ours submits and lets go is taken for sure', () => {
  const task = { key: 'x', dependencies: ['y'], runSpec: {} };
  const submitted = {
    tasks: [task],
    keys: ['x'],
    fifoTimeoutMs: 100,
    stimulusId: 'update-graph-1',
  };
  expect(isPlainGraph({ op: 'update-graph', ...submitted })).toBe(true);
  expect(isClientReleasesKeys({ op: 'client-releases-keys', keys: ['x'] })).toBe(true);
  expect(isReleaseWorkerData({ op: 'release-worker-data', keys: ['x'] })).toBe(true);
});
