import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SteadyMap, SteadySet } from '../../../../core/util/collections.ts';

type Step = { readonly kind: 'put' | 'delete'; readonly key: number } | { readonly kind: 'clear' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), key: fc.nat(20) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('delete' as const), key: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
);
const steps = fc.array(step, { maxLength: 60 });

function change(target: Map<number, string> | Set<number>, each: Step): void {
  if (each.kind === 'clear') target.clear();
  else if (each.kind === 'delete') target.delete(each.key);
  else if (target instanceof Map) target.set(each.key, `value ${each.key}`);
  else target.add(each.key);
}

/** All ways to look at one. */
function seen(target: Map<number, string> | Set<number>): unknown {
  const visited: unknown[] = [];
  target.forEach((value: unknown, key: unknown, whole: unknown) => {
    visited.push([key, value, whole === target]);
  });
  return {
    size: target.size,
    spread: [...target],
    keys: [...target.keys()],
    values: Array.from(target.values() as Iterable<unknown>),
    entries: Array.from(target.entries() as Iterable<unknown>),
    copied: target instanceof Map ? [...new Map(target)] : [...new Set(target)],
    visited,
  };
}

describe('a steady collection', () => {
  it('behaves as a Map', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const [steady, plain] = [new SteadyMap<number, string>(), new Map<number, string>()];
        for (const each of all) for (const target of [steady, plain]) change(target, each);
        expect(seen(steady)).toEqual(seen(plain));
      }),
      { numRuns: 200 },
    );
  });

  it('behaves as a Set', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const [steady, plain] = [new SteadySet<number>(), new Set<number>()];
        for (const each of all) for (const target of [steady, plain]) change(target, each);
        expect(seen(steady)).toEqual(seen(plain));
      }),
      { numRuns: 200 },
    );
  });

  it('may change during an iteration', () => {
    const map = new SteadyMap<number, string>();
    for (let key = 0; key < 5000; key++) map.set(key, 'old');
    const met: number[] = [];
    for (const [key] of map) {
      met.push(key);
      map.delete(key);
      if (key < 10) map.set(5000 + key, 'new');
    }
    expect(met).toEqual(Array.from({ length: 5010 }, (_, key) => key));
    expect(map.size).toBe(0);
  });

  it('may be cleared during an iteration', () => {
    const set = new SteadySet<number>();
    set.add(1).add(2);
    const met: number[] = [];
    for (const item of set) {
      met.push(item);
      if (item > 2) continue;
      set.clear();
      set.add(3);
    }
    expect(met).toEqual([1, 3]);
  });

  it('is printed like an ordinary one', () => {
    const map = new SteadyMap<string, number>();
    map.set('x', 1);
    expect(inspect(map)).toBe("Map(1) { 'x' => 1 }");
    expect(inspect(new SteadySet())).toBe('Set(0) {}');
  });

  it('shows only what is in it after much has passed through', () => {
    const set = new SteadySet<number>();
    for (let item = 0; item < 20_000; item++) {
      set.add(item);
      set.delete(item - 3);
    }
    expect([...set]).toEqual([19_997, 19_998, 19_999]);
  });
});
