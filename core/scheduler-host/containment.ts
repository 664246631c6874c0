import { YardmasterError } from '../api/errors.ts';
import type { NewStimulus } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { failureReport } from './failure-report.ts';
import type { Sessions } from './sessions/sessions.ts';

/** What the failure of one stimulus leaves to do, when the state around it is sound. */
export interface Consequences {
  /** To be reported. */
  readonly error: YardmasterError;
  /** In the place of the stimulus that failed. */
  readonly instead: NewStimulus | undefined;
}

/**
 * Reports the failure of a stimulus to its sender, so that nothing waits for it in vain: a client learns that its
 * keys are cancelled; a task whose end could not be handled fails with the error.
 */
export function blame(sessions: Sessions, stimulus: Stimulus, cause: unknown): Consequences {
  const { op, stimulusId } = stimulus;
  const { client, worker, keys } = stimulus as {
    readonly client?: unknown;
    readonly worker?: unknown;
    readonly keys?: unknown;
  };
  const why = cause instanceof Error ? cause.message : String(cause);
  const text = `the stimulus ${stimulusId} (${op}) failed and was dropped: ${why}. This is a bug; the scheduler continues, because its state is sound`;
  const error = new YardmasterError(
    'ERR_INVARIANT',
    text,
    { op, stimulusId, client, worker },
    { cause },
  );
  if (typeof client === 'string' && Array.isArray(keys)) {
    const message = { op: 'cancelled-keys', keys, reason: 'stimulus-failed', message: text };
    sessions.clients.get(client)?.send(message satisfies WireMessage);
  }
  return { error, instead: insteadOf(stimulus, error) };
}

/** A task whose worker has reported its end would otherwise be processing for ever. */
function insteadOf(stimulus: Stimulus, error: YardmasterError): NewStimulus | undefined {
  if (stimulus.op !== 'task-finished') return undefined;
  return failureReport(stimulus.worker, stimulus, error);
}
