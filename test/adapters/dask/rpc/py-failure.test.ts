import { expect, it } from 'vitest';

import { KeyTable } from '../../../../adapters/dask/wire/key-table.ts';
import type { Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { failureForClient } from '../../../../adapters/dask/wire/py-errors.ts';

function raised(code: string, text: string, data: object): string {
  const failure = {
    exception: { name: 'YardmasterError', message: text, code, data },
    traceback: undefined,
    exceptionText: text,
    tracebackText: '',
  };
  const { exception } = failureForClient(failure, 'sum-1', new KeyTable(() => true));
  return Buffer.from((exception as Opaque).frames[0] as Uint8Array).toString('latin1');
}

it('inputs that no worker can hold are a MemoryError in the words that Dask has for them', () => {
  const facts = {
    key: 'sum-1',
    inputBytes: 120_352,
    worker: 'tcp://a:1',
    memoryLimitBytes: 100_000,
  };
  const inner = raised('ERR_OUT_OF_MEMORY', 'too large', { ...facts, dependentCount: 1 });
  expect(inner).toContain('MemoryError');
  expect(inner).toContain(
    "Task 'sum-1' has 117.53 kiB worth of input dependencies, but worker tcp://a:1 has memory_limit set to 97.66 kiB.",
  );
  expect(inner).not.toContain('client.compute()');
  const last = raised('ERR_OUT_OF_MEMORY', 'too large', { ...facts, dependentCount: 0 });
  expect(last).toContain('you called client.compute() on a huge collection');
});

it('a lost actor is a RuntimeError in the words that Dask has for it', () => {
  const text = raised('ERR_ACTOR_LOST', 'the worker that held the actor a is gone', {});
  expect(text).toContain('RuntimeError');
  expect(text).toContain('Worker holding Actor was lost: the worker that held the actor a is gone');
});
