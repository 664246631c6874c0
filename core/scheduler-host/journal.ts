import { token, type Token } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';

export const JOURNAL: Token<SchedulerJournal> = token('journal');

/** What a scheduler starts from again after its process has ended. */
export interface SchedulerJournal {
  /** Whether there is one: workers then keep their runs while the scheduler is away. */
  readonly isOn: boolean;
  /** Resolves when what it holds has been read: peers register only then. undefined: they need not wait. */
  readonly reading: Promise<void> | undefined;
  /** Called before the kernel handles a stimulus. Writes it down, if that is necessary. */
  before(stimulus: Stimulus): void;
  /** Called when the kernel has failed at a stimulus and recovered, in the place of what it would have led to. */
  failed(stimulus: Stimulus): void;
  /** Called after the kernel has handled a stimulus, and before anything of it is sent. */
  after(): void;
  /** Whether a worker of that address was known before, and is not back yet. */
  isAwaited(address: string): boolean;
  /** Whether this is the worker of that address which was known before, and is not back yet. */
  mayReturn(address: string, secret: string | undefined): boolean;
  /** Number of the last report of the client that is written; 0: none. */
  committedOf(client: string): number;
}

/** The end of the scheduler loses its state. */
export const NO_JOURNAL: SchedulerJournal = {
  isOn: false,
  reading: undefined,
  before: () => undefined,
  failed: () => undefined,
  after: () => undefined,
  isAwaited: () => false,
  mayReturn: () => false,
  committedOf: () => 0,
};
