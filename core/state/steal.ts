/**
 * A request to give a task up, sent to the worker that is processing it, and its outcome. It stays
 * with the task until that leaves `processing`.
 */
export class GenericSteal<Worker> {
  /**
   * `asked`: no answer yet. `refused`: the victim had begun. `moved`: the thief has it.
   * Written in `relations.ts` alone.
   */
  state: 'asked' | 'refused' | 'moved' = 'asked';

  constructor(
    readonly victim: Worker,
    readonly thief: Worker,
    /** Seconds of work that the victim will be rid of. */
    readonly victimS: number,
    /** Seconds of work that the thief will get. */
    readonly thiefS: number,
  ) {}
}
