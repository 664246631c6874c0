import { afterEach, describe, expect, test } from 'vitest';

import { inBackground } from '../../../core/shared/timers.ts';
import { eventually } from '../../kit/eventually.ts';

const warnings: string[] = [];
const onWarning = (warning: Error): number => warnings.push(warning.message);

/** The next warning of the process; they are emitted a tick later. */
async function warning(): Promise<string> {
  await eventually(() => expect(warnings).not.toEqual([]));
  return warnings.shift()!;
}

afterEach(() => {
  process.off('warning', onWarning);
  warnings.length = 0;
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe('work in the background', () => {
  test('gives its failure to the handler, as an Error', async () => {
    const failed = new Promise<Error>((resolve) => {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
      inBackground(Promise.reject('not an error'), resolve);
    });
    expect(await failed).toMatchObject({ message: 'not an error' });
  });

  test.each([
    ['an object without a prototype', () => Object.create(null) as object],
    ['a revoked proxy', revoked],
  ])('gives its failure to the handler when that is %s', async (_name, make) => {
    const failed = new Promise<Error>((resolve) => {
      const work = async (): Promise<void> => {
        await Promise.resolve();
        // eslint-disable-next-line @typescript-eslint/only-throw-error
        throw make();
      };
      inBackground(work(), resolve);
    });
    expect((await failed).message).toContain('thrown');
  });

  test('becomes a warning of the process when a text is all there is to say', async () => {
    process.on('warning', onWarning);
    inBackground(Promise.reject(new Error('broken')), 'the pipe could not be closed');
    expect(await warning()).toBe('the pipe could not be closed: broken');
  });

  test('survives a handler that throws', async () => {
    process.on('warning', onWarning);
    inBackground(Promise.reject(new Error('first')), () => {
      throw new Error('second');
    });
    expect(await warning()).toContain('second');
  });
});
