import { YardmasterError } from '../../api/errors.ts';
import { show } from '../../shared/words.ts';
import { isPromise } from '../../util/is-promise.ts';

/**
 * Makes an instance of a class that an extension is, with its options.
 * @param source - whose class it is: `EnsureBroadcast from ./policies.js`
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the constructor throws
 */
export function construct(
  Class: new (options: never) => unknown,
  options: Readonly<Record<string, unknown>>,
  source: string,
): unknown {
  // An arrow function has no prototype; `new` would fail on it with a worse message.
  if (typeof (Class as { prototype?: unknown }).prototype !== 'object') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is a function and not a class: export a definition, a class or an instance`,
      { source },
    );
  }
  try {
    return new Class(options as never);
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause; // It says all that is needed.
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the constructor of ${source} threw: ${message}; it got one argument, the options ${show(options)}`,
      { source },
      { cause },
    );
  }
}

/**
 * What a definition's `create` returns.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it throws, or returns no object
 */
export function created<T>(create: () => T, source: string): T {
  try {
    return madeObject(create(), `create of ${source}`);
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_PLUGIN_LOAD')) throw cause;
    if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `create of ${source} threw: ${message}`,
      { source },
      { cause },
    );
  }
}

function madeObject<T>(made: T, by: string): T {
  if (typeof made === 'object' && made !== null && !isPromise(made)) return made;
  const what = isPromise(made) ? 'a promise; what it makes is needed at once' : show(made);
  throw new YardmasterError('ERR_PLUGIN_LOAD', `${by} returned ${what}`, { by });
}
