import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { WorkerReport } from '../../core/messages/stimulus.ts';
import { checkWorkerReport } from '../../core/scheduler-host/message-checks.ts';
import { SchedulerEnv } from '../kit/env.ts';
import type { Schema } from './schema-values.ts';

const { definitions } = JSON.parse(
  readFileSync(new URL('../../core/messages/messages.schema.json', import.meta.url), 'utf8'),
) as { readonly definitions: Readonly<Record<string, Schema>> };

/** Fields that may be infinite: bounds of times and of copies, which nothing adds up. */
const LIMITS =
  /\.(fifoTimeoutMs|killTimeoutMs|returnWithinMs|replicas|priorities|timeLimitsMs\[\])$/;

/** Paths of the numbers in a schema that have no bound on one side. */
function* unbounded(schema: Schema, path: string): Iterable<string> {
  const types = [schema.type].flat();
  const isNumber = types.includes('number') || types.includes('integer');
  const { minimum = -Infinity, maximum = Infinity } = schema;
  if (isNumber && !(Math.max(-minimum, maximum) < 1e16)) yield path;
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield* unbounded(field, `${path}.${name}`);
  }
  for (const item of [schema.items ?? []].flat()) yield* unbounded(item, `${path}[]`);
  const { additionalProperties: others } = schema;
  if (typeof others === 'object') yield* unbounded(others, `${path}.*`);
}

it('every number that a peer sends is bounded, so that NaN, infinities and 1e308 are refused', () => {
  const paths = Object.entries(definitions)
    .filter(([name]) => !name.startsWith('stimulus '))
    .flatMap(([name, schema]) => [...unbounded(schema, name)]);
  expect(paths.filter((path) => !LIMITS.test(path))).toEqual([]);
});

describe('a number of a worker', () => {
  const report = (nbytes: number, startS: number, stopS: number): WorkerReport =>
    ({
      op: 'task-finished',
      stimulusId: 'x',
      key: 'a',
      runId: 0,
      nbytes,
      type: 'number',
      timings: [
        { action: 'compute', startS, stopS },
        { action: 'transfer', startS: stopS, stopS: startS },
      ],
    }) as unknown as WorkerReport;

  it.each([Number.NaN, Infinity, -Infinity, 1e308, -1e308])('of %s is refused', (number) => {
    expect(() => checkWorkerReport({ ...report(number, 0, 1) })).toThrow(/nbytes/);
    expect(() => checkWorkerReport({ ...report(1, number, 1) })).toThrow(/startS/);
    expect(() => checkWorkerReport({ ...report(1, 0, number) })).toThrow(/stopS/);
  });

  it('within its bounds leaves all totals finite', () => {
    const size = fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true });
    const time = fc.double({
      min: Number.MIN_SAFE_INTEGER,
      max: Number.MAX_SAFE_INTEGER,
      noNaN: true,
    });
    const reports = fc.array(fc.tuple(size, time, time), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(reports, (all) => {
        const env = new SchedulerEnv();
        env.addWorkers(2);
        const keys = all.map((_, index) => `t-${index}`);
        env.submit(Object.fromEntries(keys.map((key) => [key, []])), { keys });
        for (const [index, [nbytes, startS, stopS]] of all.entries()) {
          const task = env.cluster.tasks.get(`t-${index}`)!;
          if (task.processingOn === undefined) continue;
          const message = { ...report(nbytes, startS, stopS) };
          checkWorkerReport(message);
          const worker = task.processingOn.address;
          env.send({ ...message, key: task.key, runId: task.runId, worker } as never);
        }
        env.ignoreMessages();
        const { cluster } = env;
        const [prefix] = cluster.prefixes.values();
        const [group] = cluster.groups.values();
        const totals = [cluster.totalOccupancyS, cluster.computeOccupancyS, cluster.networkBytes];
        totals.push(prefix!.durationAverageS, prefix!.durationEstimateS, prefix!.nbytesTotal);
        totals.push(group!.durationS, group!.startS, group!.stopS, group!.nbytesTotal);
        for (const worker of cluster.workersByRank) totals.push(worker.nbytes, worker.occupancyS);
        expect(totals.filter((total) => !Number.isFinite(total))).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });
});
