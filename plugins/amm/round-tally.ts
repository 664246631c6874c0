import type {
  AmmPolicyFailure,
  AmmRefusals,
  AmmRound,
  RefusalReason,
  Suggestion,
} from '../../core/api/index.ts';

const REASONS: Readonly<Record<RefusalReason, string>> = {
  'unknown-task':
    'it is about no task of the cluster; look the task up with cluster.tasks.get(key) in each round',
  'unknown-candidates':
    'none of its candidates is a worker of the cluster; look workers up with cluster.workers.get(address) in each round',
  'not-in-memory': 'the task has no result',
  actor: 'the task is an actor, which is neither copied nor dropped',
  'not-running': 'no candidate is running',
  'no-recipient': 'every running candidate has a copy or gets one',
  'no-holder': 'no candidate has a copy that is not dropped already',
  'last-copy': 'it would be the last copy',
  'replicas-wanted': 'this number of copies was requested (replicas); force: true drops it',
  'in-use': 'a task that reads the copy is processing on every candidate',
  'last-running-copy': 'the other copies are in use on workers that leave',
};

/** Says why in words. */
export function refusalText(reason: RefusalReason): string {
  return REASONS[reason];
}

/** Counts what becomes of the suggestions of one round. */
export class RoundTally {
  suggested = 0;
  accepted = 0;
  underWay = 0;
  private readonly refusals = new Map<RefusalReason, { count: number; readonly example: string }>();
  private readonly failures: AmmPolicyFailure[] = [];

  /** O(1). */
  refuse({ op, task }: Suggestion, reason: RefusalReason, policy: string): void {
    const known = this.refusals.get(reason);
    if (known !== undefined) known.count++;
    else {
      const key = (task as { readonly key?: unknown } | null | undefined)?.key;
      const subject = typeof key === 'string' ? ` "${key}"` : '';
      const example = `${policy}: ${op}${subject} is refused: ${refusalText(reason)}`;
      this.refusals.set(reason, { count: 1, example });
    }
  }

  fail(failure: AmmPolicyFailure): void {
    this.failures.push(failure);
  }

  get result(): AmmRound {
    const { suggested, accepted, underWay, failures } = this;
    const refusals: AmmRefusals[] = [...this.refusals].map(([reason, rest]) => ({
      reason,
      ...rest,
    }));
    refusals.sort((a, b) => b.count - a.count);
    const refused = refusals.reduce((sum, { count }) => sum + count, 0);
    return { suggested, accepted, underWay, refused, refusals, failures };
  }
}
