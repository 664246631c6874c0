import type { ClusterView, GroupView, PrefixView } from '../../../core/api/index.ts';

/** Prefixes with figures of their own; those that come later are summed. */
export const PREFIXES_MAX = 200;
const OTHERS = '(others)';

interface Totals {
  suspicious: number;
  computeS: number;
  transferS: number;
  outputBytes: number;
  readonly states: Map<string, number>;
}

/**
 * Sums by prefix that never fall. Groups of tasks disappear with their last task: what was last read of them is kept
 * in the sum of their prefix.
 */
export class PrefixTotals {
  /** By name of the prefix. */
  private current = new Map<string, Totals>();
  /** Seconds of groups that are gone, by name of the prefix. */
  private readonly gone = new Map<string, { computeS: number; transferS: number }>();
  private groups = new Map<string, { view: GroupView; computeS: number; transferS: number }>();
  private readonly named = new Set<string>();
  forgotten = 0;

  constructor(private readonly cluster: ClusterView) {}

  /** Reads the cluster. O(groups). */
  read(): void {
    this.current = new Map();
    this.forgotten = 0;
    for (const prefix of this.cluster.prefixes.values()) this.readPrefix(prefix);
    this.readGroups();
    for (const [name, { computeS, transferS }] of this.gone) {
      const totals = this.totalsOf(name);
      totals.computeS += computeS;
      totals.transferS += transferS;
    }
  }

  by(
    field: 'suspicious' | 'computeS' | 'transferS' | 'outputBytes',
  ): readonly (readonly [number, { readonly task_prefix_name: string }])[] {
    return [...this.current].map(([name, totals]) => [totals[field], { task_prefix_name: name }]);
  }

  states(): readonly (readonly [number, { task_prefix_name: string; state: string }])[] {
    return [...this.current].flatMap(([name, { states }]) =>
      [...states].map(([state, count]) => [count, { task_prefix_name: name, state }] as const),
    );
  }

  private readPrefix({ name, suspicious, nbytesTotal, stateCounts }: PrefixView): void {
    const totals = this.totalsOf(name);
    totals.suspicious += suspicious;
    totals.outputBytes += nbytesTotal;
    for (const [state, count] of Object.entries(stateCounts)) {
      totals.states.set(state, (totals.states.get(state) ?? 0) + count);
    }
    this.forgotten += stateCounts.forgotten;
  }

  private readGroups(): void {
    const before = this.groups;
    this.groups = new Map();
    for (const view of this.cluster.groups.values()) {
      const { name, prefix, durationS: computeS, otherDurationsS } = view;
      const transferS = otherDurationsS.get('transfer') ?? 0;
      this.groups.set(name, { view, computeS, transferS });
      const totals = this.totalsOf(prefix.name);
      totals.computeS += computeS;
      totals.transferS += transferS;
    }
    for (const [name, { view, computeS, transferS }] of before) {
      if (this.groups.get(name)?.view === view) continue;
      const prefix = this.nameOf(view.prefix.name);
      const sum = this.gone.get(prefix) ?? { computeS: 0, transferS: 0 };
      sum.computeS += computeS;
      sum.transferS += transferS;
      this.gone.set(prefix, sum);
    }
  }

  private nameOf(prefix: string): string {
    if (this.named.size < PREFIXES_MAX) this.named.add(prefix);
    return this.named.has(prefix) ? prefix : OTHERS;
  }

  private totalsOf(prefix: string): Totals {
    const name = this.nameOf(prefix);
    const found = this.current.get(name);
    if (found !== undefined) return found;
    const states = new Map<string, number>();
    const fresh = { suspicious: 0, computeS: 0, transferS: 0, outputBytes: 0, states };
    this.current.set(name, fresh);
    return fresh;
  }
}
