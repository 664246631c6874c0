import { describe, expect, test } from 'vitest';
import type { ClientReport, TaskFailure } from '../../../core/api/index.ts';
import type { KeyEntry } from '../../../adapters/client/entry.ts';
import { KeyTable } from '../../../adapters/client/key-table.ts';
import { Outgoing } from '../../../adapters/client/outgoing.ts';

interface Env {
  readonly table: KeyTable;
  /** A held key. */
  hold(key: string, definition?: string): KeyEntry;
  /** What was sent since the last call. */
  take(): ClientReport[];
}

function env(): Env {
  const sent: ClientReport[] = [];
  const outgoing = new Outgoing(
    'me',
    (reports) => sent.push(...reports),
    (_report, error) => {
      throw error;
    },
  );
  const table = new KeyTable(outgoing);
  return {
    table,
    hold: (key, definition) => {
      const entry = table.add(key, definition);
      entry.references++;
      outgoing.report({ op: 'client-desires-keys', keys: [key] });
      table.noteAsked([key]);
      return entry;
    },
    take: () => {
      outgoing.flush();
      return sent.splice(0).filter(({ op }) => op !== 'client-desires-keys');
    },
  };
}

const failure: TaskFailure = {
  exception: {
    name: 'TypeError',
    message: 'no such shelf',
    code: 'E_SHELF',
    stack: 'TypeError: …',
  },
  traceback: undefined,
  exceptionText: 'TypeError: no such shelf',
  tracebackText: '',
};

describe('the keys of a client', () => {
  test('follow the messages of the scheduler', () => {
    const { table, hold } = env();
    const entry = hold('a');
    const statuses = [entry.status];
    table.handle({ op: 'key-in-memory', key: 'a', workers: ['tcp://w:1'], nbytes: 8, after: 9 });
    statuses.push(entry.status);
    table.handle({ op: 'lost-data', key: 'a' });
    statuses.push(entry.status);
    table.handle({ op: 'task-erred', key: 'a', blame: 'root', failure, after: 9 });
    statuses.push(entry.status);
    table.handle({ op: 'task-retried', key: 'a' });
    statuses.push(entry.status);
    table.handle({ op: 'cancelled-keys', keys: ['a'], reason: 'tidying', after: 1 });
    statuses.push(entry.status);
    expect(statuses).toEqual(['pending', 'finished', 'lost', 'error', 'pending', 'cancelled']);
  });

  test('keep a result that came along until it is lost or released', () => {
    const { table, hold } = env();
    const entry = hold('a');
    const value = new Uint8Array([1]);
    const there = {
      op: 'key-in-memory',
      key: 'a',
      workers: ['tcp://w:1'],
      nbytes: 1,
      after: 9,
    } as const;
    const kept = [entry.value];
    table.handle({ ...there, value });
    kept.push(entry.value);
    table.handle({ op: 'lost-data', key: 'a' });
    kept.push(entry.value);
    table.handle({ ...there, value });
    kept.push(entry.value);
    table.handle(there);
    kept.push(entry.value);
    table.handle({ ...there, value });
    table.release(entry);
    kept.push(entry.value);
    expect(kept).toEqual([undefined, value, undefined, value, undefined, undefined]);
  });

  test('fail with the error of the worker, and with the task to blame', () => {
    const { table, hold } = env();
    const entry = hold('a');
    table.handle({ op: 'task-erred', key: 'a', blame: 'root', failure, after: 9 });
    expect(entry.error()).toMatchObject({
      name: 'TypeError',
      message: 'no such shelf',
      code: 'E_SHELF',
      data: { key: 'a', blame: 'root' },
    });
  });

  test('are released when the last holder is gone, once', () => {
    const { table, hold, take } = env();
    const entry = hold('a');
    entry.references++;
    table.release(entry);
    expect(take()).toEqual([]);
    table.release(entry);
    expect(take()).toMatchObject([{ op: 'client-releases-keys', keys: ['a'] }]);
    expect(entry.error()).toMatchObject({ code: 'ERR_CANCELLED' });
    expect(table.get('a')).toBeUndefined();
  });

  test('that are cancelled end at once and are not released again', () => {
    const { table, hold, take } = env();
    const entry = hold('a');
    table.cancel([entry], { reason: 'not needed' });
    expect(entry.error()).toMatchObject({
      code: 'ERR_CANCELLED',
      message: '"a" was cancelled: not needed',
    });
    table.release(entry);
    expect(take().map(({ op }) => op)).toEqual(['cancel-keys']);
  });

  test('that are submitted again are ended only by what follows that', () => {
    const { table, hold, take } = env();
    table.cancel([hold('a')], {});
    const again = hold('a');
    take();
    for (const after of [1, 2, undefined]) {
      const number = after === undefined ? {} : { after };
      table.handle({ op: 'cancelled-keys', keys: ['a'], reason: 'given up', ...number });
      table.handle({ op: 'restart', ...number });
    }
    expect(again.status).toBe('pending');
    table.handle({ op: 'cancelled-keys', keys: ['a'], reason: 'unknown key', after: 3 });
    expect(again.status).toBe('cancelled');
    expect(take()).toEqual([]);
  });

  test('that are submitted again get no outcome of what was submitted before', () => {
    const { table, hold } = env();
    table.release(hold('a'));
    const again = hold('a');
    for (const after of [undefined, 1, 2]) {
      const number = after === undefined ? {} : { after };
      table.handle({ op: 'key-in-memory', key: 'a', workers: ['tcp://w:1'], ...number });
      table.handle({ op: 'task-erred', key: 'a', blame: 'a', failure, ...number });
    }
    expect(again.status).toBe('pending');
    table.handle({ op: 'key-in-memory', key: 'a', workers: ['tcp://w:1'], after: 3 });
    expect(again.status).toBe('finished');
  });

  test('that are lost with their dependencies say so', () => {
    const { table, hold } = env();
    const entry = hold('a');
    const reason = 'it depends on data that is lost';
    table.handle({ op: 'cancelled-keys', keys: ['a'], reason, after: 1 });
    expect(entry.error()).toMatchObject({ code: 'ERR_LOST_DEPENDENCY' });
  });

  test('that failed are pending again when they are retried, and asked about', () => {
    const { table, hold, take } = env();
    const [failed, fine] = [hold('a'), hold('b')];
    table.handle({ op: 'task-erred', key: 'a', blame: 'a', failure, after: 9 });
    table.retry([failed, fine]);
    expect(failed.status).toBe('pending');
    expect(take()).toMatchObject([
      { op: 'retry', keys: ['a'] },
      { op: 'report-key', key: 'a' },
    ]);
  });

  test('cannot mean two things at once', () => {
    const { table, hold } = env();
    const entry = hold('a', 'first');
    expect(() => table.check('a', 'first')).not.toThrow();
    expect(() => table.check('a', 'second')).toThrow('the key "a" is taken');
    table.release(entry);
    expect(() => table.check('a', 'second')).not.toThrow();
  });

  test('inside a graph are taken until its requested results are released', () => {
    const { table, hold } = env();
    const [out1, out2] = [hold('out1', 'o1'), hold('out2', 'o2')];
    table.definitions.add(new Map([['inner', 'first']]), ['out1', 'out2']);
    table.release(out1);
    expect(() => table.check('inner', 'second')).toThrow('the key "inner" is taken');
    table.release(out2);
    expect(() => table.check('inner', 'second')).not.toThrow();
  });

  test('are all cancelled by a restart of the scheduler', async () => {
    const { table, hold } = env();
    const entries = [hold('a'), hold('b')];
    const settled = Promise.all(entries.map((entry) => entry.settled()));
    table.handle({ op: 'restart', after: 2 });
    await settled;
    expect(entries.map((entry) => entry.status)).toEqual(['cancelled', 'cancelled']);
    expect(table.size).toBe(0);
  });
});
