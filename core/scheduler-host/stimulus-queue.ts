import { collaborator } from '../plugin-host/injection.ts';
import { toErrorPayload, type YardmasterError } from '../api/errors.ts';
import type { IncomingStimulus } from './tokens.ts';
import type { NewStimulus } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';

/**
 * Stimuli in the order in which they came, handled one at a time. One that comes while another is
 * being handled waits; so a hook that enqueues never enters the kernel again.
 */
@collaborator
export class StimulusQueue {
  /** A stimulus is being handled. */
  isBusy = false;
  /** Nothing is handled any more. */
  isStopped = false;
  private readonly waiting: Stimulus[] = [];
  private readonly changes: (() => void)[] = [];
  private counter = 0;
  private handle: (stimulus: Stimulus) => void = () => undefined;

  /** Sets what handles the stimuli. */
  consume(handle: (stimulus: Stimulus) => void): void {
    this.handle = handle;
  }

  /** An id that no stimulus has had: `task-finished-17`. */
  nextId(op: string): string {
    return `${op}-${++this.counter}`;
  }

  /** Handles a stimulus now, or after those that wait. Without an id, or with an empty one, it gets one. */
  put(stimulus: IncomingStimulus): void {
    if (this.isStopped) return;
    if (stimulus.stimulusId !== undefined && stimulus.stimulusId !== '') {
      this.waiting.push(stimulus as Stimulus);
    } else {
      this.waiting.push({ ...stimulus, stimulusId: this.nextId(stimulus.op) });
    }
    if (!this.isBusy) this.drain();
  }

  /** Runs a change between two stimuli: now, or at the end of the present one. */
  between(change: () => void): void {
    if (this.isBusy) this.changes.push(change);
    else change();
  }

  /** Runs the changes that wait for the end of the present stimulus; its handler calls this. */
  runChanges(): void {
    while (this.changes.length > 0) for (const change of this.changes.splice(0)) change();
  }

  /** Drops what waits, and ignores what comes from now on. */
  stop(): void {
    this.isStopped = true;
    this.waiting.length = 0;
  }

  private drain(): void {
    this.isBusy = true;
    try {
      // By index: shifting a long array costs as much as the array is long.
      for (let index = 0; index < this.waiting.length; index++) {
        this.handle(this.waiting[index] as Stimulus);
      }
    } finally {
      this.waiting.length = 0;
      this.isBusy = false;
    }
  }
}

/** Keys of a stimulus that are named. */
const NAMED_MAX = 20;

/** A stimulus at which something failed, for people and for programs. */
export interface StimulusName {
  /** `update-data-5 (update-data) of client-1 about a, b` */
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Names a stimulus with its sender and the first of its keys. */
export function nameOfStimulus(stimulus: Stimulus): StimulusName {
  const { op, stimulusId } = stimulus;
  const { client, worker, keys } = stimulus as {
    readonly client?: string;
    readonly worker?: string;
    readonly keys?: readonly string[];
  };
  const sender = client ?? worker;
  const named = keys?.slice(0, NAMED_MAX);
  const of = sender === undefined ? '' : ` of ${sender}`;
  const about = named === undefined || named.length === 0 ? '' : ` about ${named.join(', ')}`;
  return {
    text: `${stimulusId} (${op})${of}${about}`,
    fields: { op, stimulusId, client, worker, keys: named },
  };
}

/** One run of a task on a worker. */
interface Run {
  readonly key: string;
  readonly runId: number;
}

/** The report with which a run fails that its worker cannot report itself. */
export function failureReport(
  worker: string,
  { key, runId }: Run,
  error: YardmasterError,
): NewStimulus {
  return {
    op: 'task-erred',
    worker,
    key,
    runId,
    failure: {
      exception: toErrorPayload(error),
      traceback: undefined,
      exceptionText: error.message,
      tracebackText: error.stack ?? '',
    },
  };
}
