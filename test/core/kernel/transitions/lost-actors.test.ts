import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

/** A failure, and another one above it that has no worker any more; both hold `c` back. */
function failedBelowActor(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit(
    {
      actor: { actor: true, workers: ['tcp://w1:1'] },
      other: { workers: ['tcp://w2:1'] },
      c: { deps: ['actor', 'other'] },
      d: { deps: ['c'] },
    },
    { keys: ['actor', 'other', 'c', 'd'] },
  );
  env.finish('actor');
  env.fail('other');
  return env.ignoreMessages();
}

it('what failed already takes over the blame of an actor that is lost, as does all that failed with it', () => {
  const env = failedBelowActor();
  env.removeWorker('w1');
  env.retry('other');
  env.submit({ d: ['c'] }, { client: 'other client', keys: ['d'] });
  expect(env.states).toMatchObject({ c: 'erred', d: 'erred' });
  expect(env.task('d').exceptionBlame?.key).toBe('actor');
});

it('a failed task below an actor that is lost, retried, is reported to another client', () => {
  const env = failedBelowActor();
  env.removeWorker('w1');
  env.retry('actor');
  env.submit({ d: ['c'] }, { client: 'other client', keys: ['d'] });
  expect(env.task('d').exceptionBlame?.key).toBe('other');
});

it.each([Infinity, 1])(
  'of two actors that are lost together, the one that failed first is to blame, in slices of %s',
  (sliceTransitions) => {
    const env = new SchedulerEnv({ kernel: { sliceTransitions } });
    env.addWorkers(2);
    const actor = { actor: true, workers: ['tcp://w1:1'] };
    const open = { workers: ['tcp://w2:1'] };
    const settle = (): void => {
      while (env.kernel.isUnsettled) env.send({ op: 'continue' });
    };
    env.submit({ a: actor, b: actor, open, c: { deps: ['a', 'b', 'open'] } });
    settle();
    env.finishAll('a', 'b');
    env.removeWorker('w1');
    settle();
    // The newest recommendation is followed first.
    expect(env.task('c').exceptionBlame?.key).toBe('b');
  },
);
