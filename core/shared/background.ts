/** Work that no caller waits for. */
import { printable } from '../util/printable.ts';

/**
 * Lets work continue without a caller that awaits it, and handles its failure. A promise without
 * such a handler ends the process when it rejects, so a lint rule demands this call, `await` or
 * `.catch`.
 *
 * @param failed - receives what the work rejects with; a text is shown as a warning of the process,
 *   for work that has no logger and is not expected to fail. What the handler throws becomes such a
 *   warning, too.
 */
export function inBackground(
  work: PromiseLike<unknown>,
  failed: string | ((error: Error) => void),
): void {
  work.then(undefined, (thrown: unknown) => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
    if (typeof failed === 'string') warn(failed, error);
    else {
      try {
        failed(error);
      } catch (second) {
        warn('a failure of work in the background could not be handled', second as Error);
      }
    }
  });
}

function warn(text: string, error: Error): void {
  process.emitWarning(printable(`${text}: ${error.message}`), { detail: error.stack ?? '' });
}
