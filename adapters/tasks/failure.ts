import { type ErrorPayload, toErrorPayload } from '../../core/api/index.ts';
import { foldStack } from './fold-stack.ts';

/**
 * The payload of anything that was thrown, made of nothing but plain data: it passes every boundary
 * between threads and processes, whatever the error carried.
 */
export function describeFailure(thrown: unknown): ErrorPayload {
  try {
    return folded(JSON.parse(JSON.stringify(toErrorPayload(thrown))) as ErrorPayload);
  } catch (cause) {
    // A property that recurses, or a getter that throws.
    return {
      name: textOf(thrown, 'name') ?? 'Error',
      message:
        textOf(thrown, 'message') ??
        `the task threw something that cannot be described (${String(cause)})`,
      stack: textOf(thrown, 'stack') ?? '',
      code: textOf(thrown, 'code') ?? 'ERR_TASK',
    };
  }
}

/** Without the frames of what has run the task. */
function folded({ stack, cause, ...rest }: ErrorPayload): ErrorPayload {
  return {
    ...rest,
    ...(stack === undefined ? {} : { stack: foldStack(stack) }),
    ...(cause === undefined ? {} : { cause: folded(cause) }),
  };
}

function textOf(thrown: unknown, property: string): string | undefined {
  try {
    const value = (thrown as Record<string, unknown>)[property];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
