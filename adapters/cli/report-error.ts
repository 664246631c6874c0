import { YardmasterError } from '../../core/api/index.ts';

/** Causes that are shown. */
const CAUSES_MAX = 5;

/**
 * What people see of an error: code and message, and the messages of what caused it.
 * @param verbose - with the stack
 */
export function errorText(error: unknown, verbose: boolean): string {
  const lines = [headline(error)];
  let cause = causeOf(error);
  for (let depth = 0; cause !== undefined && depth < CAUSES_MAX; depth++) {
    // A message that repeats its cause, as many do, needs no second line.
    if (!lines.some((line) => line.includes(messageOf(cause)))) {
      lines.push(`  because: ${headline(cause)}`);
    }
    cause = causeOf(cause);
  }
  if (verbose && error instanceof Error && error.stack !== undefined) lines.push(error.stack);
  return lines.join('\n');
}

function headline(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const prefix = YardmasterError.is(error) || typeof code === 'string' ? `${String(code)}: ` : '';
  return `${prefix}${messageOf(error)}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
