import {
  type ActiveMemoryManagerPolicy,
  type LoadedExtension,
  YardmasterError,
} from '../../core/api/index.ts';

type Policy = ActiveMemoryManagerPolicy<unknown>;

/**
 * A class is made with its options; an instance is taken as it is.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it is no policy, or its constructor throws
 */
export function makePolicy(loaded: LoadedExtension): Policy {
  const { source, exported } = loaded;
  const instead = loaded.insteadOf('amm-policy');
  const made = instead === '' && exported !== undefined ? loaded.create() : undefined;
  checkPolicy(made, source, instead);
  return made;
}

/**
 * @param instead - what it is, for the end of the message
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkPolicy(
  value: unknown,
  source = shown(value),
  instead = '',
): asserts value is Policy {
  const isObject = typeof value === 'object' && value !== null;
  const run: unknown = isObject ? (value as { run?: unknown }).run : undefined;
  if (typeof run !== 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is no policy of the memory manager: it has no method run; extend ActiveMemoryManagerPolicy${instead}`,
      { source },
    );
  }
  if (run.constructor.name.startsWith('Async')) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `run of ${source} is asynchronous; a round is one step of the scheduler, so write *run(amm) without async`,
      { source },
    );
  }
}

function shown(value: unknown): string {
  if (typeof value === 'function') return `the class ${value.name}, which is no instance,`;
  return typeof value === 'object' && value !== null ? value.constructor.name : String(value);
}
