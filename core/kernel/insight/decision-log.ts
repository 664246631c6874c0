import type { Decision } from '../../api/insight.ts';
import { nextInRing } from '../../util/collections/ring.ts';
import type { KernelScope } from '../scope.ts';
import { explainPlacement } from './explain-placement.ts';
import type { PlacementEvent, Watcher } from './watcher.ts';

/** The newest decisions, each with its candidates: a bounded ring. */
export class DecisionLog implements Watcher {
  private readonly ring: Decision[] = [];
  private next = 0;

  /** @param lengthMax - decisions kept, at least 1 */
  constructor(
    private readonly scope: KernelScope,
    private readonly lengthMax: number,
  ) {}

  placed(event: PlacementEvent): void {
    this.add(explainPlacement(this.scope, event));
  }

  add(decision: Decision): void {
    this.ring[this.next] = decision;
    this.next = nextInRing(this.next, this.lengthMax);
  }

  /** Decisions about this key, oldest first. O(length of the ring). */
  about(key: string): Decision[] {
    const oldestFirst =
      this.ring.length < this.lengthMax
        ? this.ring
        : [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    return oldestFirst.filter((decision) => decision.key === key);
  }
}
