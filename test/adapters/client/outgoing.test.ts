import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ClientReport } from '../../../core/api/index.ts';
import { Outgoing } from '../../../adapters/client/outgoing.ts';

function aSubmission(key: string, nbytes = 1) {
  const task = { key, dependencies: [], runSpec: {} };
  return { tasks: [task], keys: [key], fifoTimeoutMs: 100, nbytes };
}

function recorded(): { sent: (readonly ClientReport[])[]; outgoing: Outgoing } {
  const sent: (readonly ClientReport[])[] = [];
  const refuse = (_report: unknown, error: Error): never => {
    throw error;
  };
  return { sent, outgoing: new Outgoing('me', (reports) => sent.push(reports), refuse) };
}

describe('what a client sends', () => {
  test('in one turn becomes one graph', async () => {
    const { sent, outgoing } = recorded();
    outgoing.submit(aSubmission('a'));
    outgoing.submit(aSubmission('b'));
    await Promise.resolve();
    outgoing.submit(aSubmission('c'));
    await nextTurn();
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject([{ op: 'update-graph', keys: ['a', 'b', 'c'] }]);
  });

  test('in two turns becomes two graphs', async () => {
    const { sent, outgoing } = recorded();
    outgoing.submit(aSubmission('a'));
    await nextTurn();
    outgoing.submit(aSubmission('b'));
    await nextTurn();
    expect(sent.map((reports) => reports.length)).toEqual([1, 1]);
  });

  test('keeps its order: a graph after a release is not merged with one before it', () => {
    const { sent, outgoing } = recorded();
    outgoing.submit(aSubmission('a'));
    outgoing.releaseKey('a');
    outgoing.releaseKey('b');
    outgoing.submit(aSubmission('a'));
    outgoing.flush();
    expect(sent[0]?.map(({ op }) => op)).toEqual([
      'update-graph',
      'client-releases-keys',
      'update-graph',
    ]);
    expect(sent[0]?.[1]).toMatchObject({ keys: ['a', 'b'] });
  });

  test('does not merge submissions of different simultaneity', () => {
    const { sent, outgoing } = recorded();
    outgoing.submit(aSubmission('a'));
    outgoing.submit({ ...aSubmission('b'), fifoTimeoutMs: 60_000 });
    outgoing.flush();
    expect(sent[0]).toHaveLength(2);
  });

  test('goes into several graphs when the arguments are large', () => {
    const { sent, outgoing } = recorded();
    for (const key of ['a', 'b', 'c']) outgoing.submit(aSubmission(key, 10 * 1024 * 1024));
    outgoing.flush();
    expect(sent[0]).toHaveLength(3);
  });

  test('has a different stimulus id each time', () => {
    const { sent, outgoing } = recorded();
    outgoing.report({ op: 'heartbeat-client' });
    outgoing.report({ op: 'heartbeat-client' });
    outgoing.flush();
    expect(new Set(sent[0]?.map(({ stimulusId }) => stimulusId)).size).toBe(2);
  });

  test('is sent also when it follows from what could not be sent after a look-up in a store', async () => {
    const sent: ClientReport[] = [];
    const outgoing: Outgoing = new Outgoing(
      'me',
      (reports) => {
        if (reports.some(({ op }) => op === 'update-graph')) throw new Error('not to be sent');
        sent.push(...reports);
      },
      () => outgoing.report({ op: 'client-desires-keys', keys: ['other'] }),
    );
    outgoing.submit({ ...aSubmission('a'), mayBeKept: true });
    outgoing.flush();
    await outgoing.whenSent;
    await nextTurn();
    expect(sent).toMatchObject([{ op: 'client-desires-keys', keys: ['other'] }]);
  });
});
