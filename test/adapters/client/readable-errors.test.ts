import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client, Future } from '../../../adapters/client/index.ts';
import { foldStack } from '../../../adapters/tasks/index.ts';
import { add, fail, throwText } from './tasks.ts';

/** Submits from a place with a name. */
function orderTea(client: Client): Promise<number> {
  return client.submit(fail, 'no tea').result();
}

const errorOf = async (promise: Promise<unknown>): Promise<Error> => {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
};

describe('the error of a task', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test('shows where it was thrown, its key, and where it was submitted, in one stack', async () => {
    const stack = (await errorOf(orderTea(client))).stack ?? '';
    const [thrown, submitted] = stack.split('submitted at:');
    expect(thrown).toMatch(/^RangeError: no tea\n\s+at .*fail .*tasks\.ts/);
    expect(thrown).toMatch(/in the task "fail-[0-9a-f]+"/);
    expect(submitted).toMatch(/at orderTea .*readable-errors\.test\.ts/);
    expect(stack.replaceAll('/test/adapters/', '')).not.toMatch(/adapters\/(tasks|client|app)/);
    expect(stack).not.toContain('node:internal');
  });

  test('is printed once, with its cause, its code and its data', async () => {
    const text = inspect(await errorOf(orderTea(client)), { depth: 5 });
    expect(text.match(/no tea/g)).toHaveLength(1);
    expect(text.match(/the deeper reason/g)).toHaveLength(1);
    expect(text).toContain("code: 'E_TEST'");
    expect(text).toContain('shelf: 7');
    expect(text).not.toContain('yardmaster.error');
  });

  test('of a task that depends on a failed one names both', async () => {
    const dependent = client.submit(add, client.submit(fail, 'no milk'), 1);
    const error = await errorOf(dependent.result());
    expect(error.stack).toMatch(/in the task "add-[0-9a-f]+", because of "fail-[0-9a-f]+"/);
  });

  test('shows a place of its own function, however many others were submitted before', async () => {
    const submitOther = (item: number): Future<number> => client.submit(add, item, 1);
    const others = Array.from({ length: 500 }, (_, item) => submitOther(item));
    const { stack = '' } = await errorOf(orderTea(client));
    const place = stack.split('submitted at:')[1];
    expect(place).toContain('readable-errors.test.ts');
    expect(place).not.toContain('submitOther');
    for (const other of others) other.release();
  });

  test('that is no Error keeps what was thrown', async () => {
    expect(await errorOf(client.submit(throwText, 'just text').result())).toMatchObject({
      name: 'NonError',
      data: { thrown: 'just text' },
    });
  });
});

test('a stack with nothing but internal frames is kept as it is', () => {
  const stack = 'Error: x\n    at node:internal/timers:1:2';
  expect(foldStack(stack)).toBe(stack);
});
