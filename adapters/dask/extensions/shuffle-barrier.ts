import { YardmasterError } from '../../../core/api/index.ts';
import type { DaskContext } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import type { Shuffle } from './shuffle-runs.ts';

/** Attempts of which none reached any worker more before it is given up. */
const IDLE_ATTEMPTS_MAX = 3;
const PAUSE_MS = 100;

/**
 * Informs all workers of a shuffle that it has received its last pieces, so that they write what
 * they have.
 * @throws PythonException `RuntimeError`, `P2PIllegalStateError`
 */
export async function tellInputsDone(context: DaskContext, shuffle: Shuffle): Promise<void> {
  let waiting = [...shuffle.participants];
  let idleCount = 0;
  while (waiting.length > 0) {
    const unreached = await tell(context, shuffle, waiting);
    const gone = unreached.filter((address) => !context.workers.has(address));
    if (gone.length > 0) {
      throw new PythonException(
        'RuntimeError',
        `Worker ${gone.join(', ')} left during shuffle ${shuffle.id}`,
      );
    }
    idleCount = unreached.length === waiting.length ? idleCount + 1 : 0;
    if (idleCount >= IDLE_ATTEMPTS_MAX) {
      throw new PythonException(
        'RuntimeError',
        `the workers ${unreached.join(', ')} of shuffle ${shuffle.id} cannot be reached; they may be overloaded`,
      );
    }
    waiting = unreached;
    if (waiting.length > 0) await pause(context);
  }
}

/** Addresses of the workers that could not be reached. */
async function tell(
  { pool }: DaskContext,
  { id, runId }: Shuffle,
  addresses: readonly string[],
): Promise<string[]> {
  const parameters = { shuffle_id: id, run_id: runId };
  const unreached: string[] = [];
  await Promise.all(
    addresses.map(async (address) => {
      try {
        await pool.call(address, 'shuffle_inputs_done', parameters);
      } catch (error) {
        if (YardmasterError.is(error)) unreached.push(address);
        else {
          const text = error instanceof Error ? error.message : String(error);
          throw new PythonException(
            'RuntimeError',
            `Unexpected error encountered during P2P barrier: ${text}`,
            { cause: error },
          );
        }
      }
    }),
  );
  return unreached;
}

function pause({ clock }: DaskContext): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(PAUSE_MS, resolve);
  });
}
