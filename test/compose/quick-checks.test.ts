import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { WireMessage } from '../../core/api/index.ts';
import { checkWorkerReport } from '../../core/compose/inbound.ts';
import { isTaskFinished } from '../../core/compose/quick-checks.ts';

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
  .map((changes): WireMessage => ({ ...sound, ...changes, op: 'task-finished' }));

/** The schema alone: a message that the quick check never takes for sure, with the same answer. */
function schemaTakes(message: WireMessage): boolean {
  const metadata = message['metadata'] ?? {};
  try {
    checkWorkerReport({ ...message, metadata });
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
