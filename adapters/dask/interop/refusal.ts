import { YardmasterError } from '../../../core/api/index.ts';

/** What passes between the languages, for people. */
const PORTABLE =
  'None, booleans, numbers, texts, bytes, lists, dicts with plain keys, NumPy arrays of numbers or booleans, and Arrow tables';

/** Thrown on the way into a value: says what it is that cannot pass, and where in the value it is. */
export class NotPortable extends Error {
  constructor(
    /** `an object of module.Class`, `a Set`. */
    readonly what: string,
    /** Way to it within the value: `[0].name`. Empty: the value itself. */
    readonly path = '',
  ) {
    super(what);
    this.name = 'NotPortable';
  }
}

/** Nesting beyond which a value is refused: Python's own limit is not far above it. */
export const DEPTH_MAX = 400;

/** Runs a step into a value; a refusal in it then names this step in its path. */
export function within<T>(place: string | number, step: () => T): T {
  try {
    return step();
  } catch (thrown) {
    if (!(thrown instanceof NotPortable)) throw thrown;
    const name = typeof place === 'number' ? `[${place}]` : `.${place}`;
    throw new NotPortable(thrown.what, name + thrown.path);
  }
}

/** From which language to which. */
type Way = readonly [from: string, to: string];

/** The refusal of a result, as users see it. */
export function resultRefused(cause: NotPortable, result: string, way: Way): YardmasterError {
  return refused(cause, `the result of "${result}"`, way, { result });
}

/** The refusal of the arguments of a task. */
export function argumentRefused(cause: NotPortable, task: string, way: Way): YardmasterError {
  return refused(cause, `an argument of "${task}"`, way, {});
}

function refused(
  { what, path }: NotPortable,
  subject: string,
  [from, to]: Way,
  data: Readonly<Record<string, unknown>>,
): YardmasterError {
  const where = path === '' ? 'is' : `has at ${path}`;
  return new YardmasterError(
    'ERR_NOT_PORTABLE',
    `${subject} ${where} ${what}, which cannot pass from ${from} to ${to}; what can: ${PORTABLE}. Convert it in a task of ${from}`,
    { ...data, type: what, path, from, to, allowed: PORTABLE },
  );
}
