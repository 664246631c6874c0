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
    if (!isSaid(cause, lines.join('\n'))) lines.push(`  because: ${headline(cause)}`);
    cause = causeOf(cause);
  }
  if (verbose && error instanceof Error && error.stack !== undefined) lines.push(error.stack);
  return lines.join('\n');
}

/** A message that repeats its cause, as many do, needs no second line. Of a list each line may be elsewhere. */
function isSaid(cause: unknown, text: string): boolean {
  const message = messageOf(cause);
  if (text.includes(message)) return true;
  const [first = '', ...rest] = message.split('\n').map((line) => line.trim());
  const parts = rest.length > 0 && first.endsWith(':') ? rest : [first, ...rest];
  return parts.every((part) => text.includes(part));
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
