/** Where a task may run. A task without restrictions has no such object. */
export interface Restrictions {
  /** Addresses; they may name workers that are not connected (yet). */
  readonly workers?: ReadonlySet<string>;
  /**
   * Names of workers, looked up at the time of use; a name that no worker has is taken for a host.
   */
  readonly names?: ReadonlySet<string>;
  /** Host names, or worker names that stand for their hosts. */
  readonly hosts?: ReadonlySet<string>;
  /** Amount of each resource that the task occupies while it is processing. */
  readonly resources?: ReadonlyMap<string, number>;
  /** Whether the restrictions on workers and hosts are only preferences. */
  readonly loose?: boolean;
}
