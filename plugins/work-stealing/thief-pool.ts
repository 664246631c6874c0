import { MinHeap } from '../../core/util/collections/min-heap.ts';
import type { Load } from './loads.ts';

/** Members that are examined for a task that only some workers may run. */
const LOOKED_AT_MAX = 32;

interface Member {
  readonly load: Load;
  /** As it was when the member was last put into its place; a thief only gets more. */
  perThreadS: number;
}

/** Thieves, the one with the least work on top. Loads that have grown meanwhile are noticed. */
export class ThiefPool {
  private readonly members = new MinHeap<Member>(byLoad);

  constructor(loads: Iterable<Load>) {
    for (const load of loads) this.members.push({ load, perThreadS: load.perThreadS });
  }

  /** The thief with the least work; undefined when no member is a thief any more. */
  top(): Load | undefined {
    const { members } = this;
    for (let first = members.peek(); first !== undefined; first = members.peek()) {
      const { load } = first;
      if (!load.isThief) {
        members.pop();
      } else if (first.perThreadS === load.perThreadS) {
        return load;
      } else {
        first.perThreadS = load.perThreadS;
        members.settleTop();
      }
    }
    return undefined;
  }

  /** The first that will do, of a limited number. */
  find(willDo: (load: Load) => boolean): Load | undefined {
    const { members } = this;
    const passedOver: Member[] = [];
    let found: Load | undefined;
    while (passedOver.length < LOOKED_AT_MAX) {
      const load = this.top();
      if (load === undefined) break;
      if (willDo(load)) {
        found = load;
        break;
      }
      passedOver.push(members.pop() as Member);
    }
    for (const member of passedOver) members.push(member);
    return found;
  }
}

function byLoad(a: Member, b: Member): number {
  if (a.perThreadS !== b.perThreadS) return a.perThreadS - b.perThreadS;
  if (a.load.nbytes !== b.load.nbytes) return a.load.nbytes - b.load.nbytes;
  return a.load.rank - b.load.rank;
}
