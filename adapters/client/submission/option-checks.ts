import { inspect } from 'node:util';
import { YardmasterError } from '../../../core/api/index.ts';

/**
 * @param known - the options that there are
 * @throws YardmasterError `ERR_GRAPH_INVALID` when they are no object, or naming an option that is not known
 */
export function checkNames(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const got = inspect(options, { depth: 0 });
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `an object with the options ${known.join(', ')} is wanted here, got ${got}`,
    );
  }
  for (const option of Object.keys(options)) {
    if (known.includes(option)) continue;
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `there is no option "${option}"; there are ${known.join(', ')}`,
      { option },
    );
  }
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function refuseOption(option: string, value: unknown, wanted: string): never {
  const got = typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 1 });
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the option ${option} must be ${wanted}, got ${got}`,
    { option },
  );
}
