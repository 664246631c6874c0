import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../../adapters/clocks/index.ts';
import { MemoryStore } from '../../../../adapters/stores/index.ts';
import { serialise } from '../../../../adapters/tasks/index.ts';
import { valueBytes } from '../../../../core/util/bytes.ts';
import type { SpillArea } from '../../../../core/api/index.ts';
import { type SpillTrouble, TieredStore } from '../../../../core/worker/tiered-store.ts';

/** A disk in the hands of the test. */
class Disk implements SpillArea {
  readonly files = new Map<string, Uint8Array>();
  readonly calls: string[] = [];
  broken: Error | undefined;

  get nbytes(): number {
    return [...this.files.values()].reduce((total, file) => total + file.byteLength, 0);
  }

  write(key: string, value: Uint8Array): void {
    this.calls.push(`write ${key}`);
    if (this.broken !== undefined) throw this.broken;
    this.files.set(key, value.slice());
  }

  read(key: string): Uint8Array {
    this.calls.push(`read ${key}`);
    const file = this.files.get(key);
    if (file === undefined) throw new Error('no such file');
    return file.slice();
  }

  delete(key: string): void {
    this.files.delete(key);
  }

  close(): void {
    this.files.clear();
  }

  take(): string[] {
    return this.calls.splice(0);
  }
}

/** A store whose target is 100 bytes. */
function world({ targetBytes = 100, maxSpillBytes = Infinity } = {}) {
  const clock = new VirtualClock();
  const ram = new MemoryStore();
  const disk = new Disk();
  const lost: string[] = [];
  const troubles: SpillTrouble[] = [];
  const store = new TieredStore({
    ram,
    disk,
    clock,
    targetBytes,
    maxSpillBytes,
    onLost: (key) => lost.push(key),
    onGarbage: () => undefined,
    onTrouble: (trouble) => troubles.push(trouble),
  });
  return { clock, ram, disk, store, lost, troubles };
}

const bytes = (length: number, fill = 1): Uint8Array => new Uint8Array(length).fill(fill);

describe('results that do not fit into memory', () => {
  it('stay there when they refer to shared memory, and count with all of it', () => {
    const { store, disk, ram } = world();
    const memory = new SharedArrayBuffer(300);
    const value = serialise(new Uint8Array(memory), 'value', undefined, true);
    store.set('shared', value);
    store.set('a', bytes(40));
    store.set('b', bytes(40));
    expect(store.ramBytes).toBe(valueBytes(value) + 40);
    expect(valueBytes(value)).toBeGreaterThan(300);
    expect(store.spill(1000)).toBe(40);
    expect(disk.take()).toEqual(['write a', 'write b']);
    expect(store.get('shared')).toBe(value);
    store.delete('shared');
    expect([store.ramBytes, ram.nbytes]).toEqual([0, 0]);
    expect(store.nbytes).toBe(80);
  });

  it('what was used least recently goes to disk, and comes back when it is asked for', () => {
    const { store, disk, ram } = world();
    store.set('a', bytes(40, 1));
    store.set('b', bytes(40, 2));
    store.get('a');
    store.set('c', bytes(40, 3));
    expect(disk.take()).toEqual(['write b']);
    expect([store.ramBytes, store.spilledBytes, store.nbytes]).toEqual([80, 40, 120]);
    expect(store.get('b')).toEqual(bytes(40, 2));
    expect(disk.take()).toEqual(['read b', 'write a']);
    expect([...ram.keys()].sort()).toEqual(['b', 'c']);
  });

  it('space for expected results is free before they arrive', () => {
    const { store, disk } = world();
    store.set('a', bytes(40));
    store.set('b', bytes(40));
    const hasCome = store.reserve(50);
    expect(disk.take()).toEqual(['write a']);
    store.set('c', bytes(30)); // Beside what is expected.
    expect(disk.take()).toEqual(['write b']);
    hasCome();
    store.set('d', bytes(50));
    expect([disk.take(), store.ramBytes]).toEqual([[], 80]);
  });

  it('the target can change', () => {
    const { store, disk } = world();
    for (const key of ['a', 'b', 'c']) store.set(key, bytes(30));
    store.aim(50);
    expect(disk.take()).toEqual([]);
    store.set('d', bytes(20));
    expect([disk.take(), store.ramBytes]).toEqual([['write a', 'write b'], 50]);
  });

  it('to spill again what came back costs nothing', () => {
    const { store, disk } = world();
    store.set('a', bytes(60));
    store.set('b', bytes(60));
    store.get('a');
    disk.take();
    store.get('b');
    store.get('a');
    expect(disk.take()).toEqual(['read b', 'read a']);
    expect([store.ramBytes, store.spilledBytes, store.diskBytes]).toEqual([60, 60, 120]);
  });

  it('a value that alone reaches the target goes to disk at once, and is lent from there', () => {
    const { store, disk } = world();
    store.set('small', bytes(10));
    store.set('big', bytes(100));
    expect([store.ramBytes, store.spilledBytes]).toEqual([10, 100]);
    expect(store.get('big')).toEqual(bytes(100));
    expect(store.ramBytes).toBe(10);
    expect(disk.take()).toEqual(['write big', 'read big']);
  });

  it('without a target nothing is spilled but on demand, the least recently used first', () => {
    const { store, disk } = world({ targetBytes: Infinity });
    for (const key of ['a', 'b', 'c']) store.set(key, bytes(50));
    store.get('a');
    expect(store.spill(60)).toBe(100);
    expect(disk.take()).toEqual(['write b', 'write c']);
    expect(store.spill(1000)).toBe(50);
  });

  it('what is deleted is deleted everywhere', () => {
    const { store, disk, ram } = world();
    store.set('a', bytes(60));
    store.set('b', bytes(60));
    expect(['a', 'b', 'a'].map((key) => store.delete(key))).toEqual([true, true, false]);
    expect([store.nbytes, disk.nbytes, ram.nbytes]).toEqual([0, 0, 0]);
    expect([...store.keys()]).toEqual([]);
  });

  it('a new value takes the place of one on disk', () => {
    const { store } = world();
    store.set('a', bytes(60, 1));
    store.set('b', bytes(60, 2));
    store.set('a', bytes(30, 3));
    expect(store.get('a')).toEqual(bytes(30, 3));
    expect([store.ramBytes, store.spilledBytes, store.diskBytes]).toEqual([90, 0, 0]);
  });
});

describe('a disk that takes no more', () => {
  it('the limit is not exceeded: values stay in memory, and that is reported once', () => {
    const { store, disk, troubles } = world({ maxSpillBytes: 50 });
    for (const key of ['a', 'b', 'c', 'd']) store.set(key, bytes(40));
    expect(disk.nbytes).toBe(40);
    expect(store.ramBytes).toBe(120);
    expect(troubles).toEqual([{ why: 'full', key: 'b', nbytes: 40, maxBytes: 50 }]);
    expect(store.canSpill).toBe(false);
    store.delete('a');
    expect(store.canSpill).toBe(true);
    expect(store.spill(1)).toBe(40);
  });

  it('copies of results in memory free space', () => {
    const { store, disk, troubles } = world({ maxSpillBytes: 120 });
    store.set('a', bytes(60));
    store.set('b', bytes(60));
    store.get('a'); // Now b is on disk only, and a is on disk as well.
    store.set('c', bytes(30));
    store.set('d', bytes(30));
    expect(troubles).toEqual([]);
    for (const key of ['a', 'b', 'c', 'd']) expect(store.get(key)).toBeDefined();
    expect(disk.nbytes).toBeLessThanOrEqual(120);
  });

  it('after a failure it is left alone for five seconds', () => {
    const { store, disk, clock, troubles } = world();
    disk.broken = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    store.set('a', bytes(60));
    store.set('b', bytes(60));
    store.set('big', bytes(200));
    expect(disk.take()).toEqual(['write a']);
    expect(troubles).toEqual([{ why: 'failed', key: 'a', nbytes: 60, error: disk.broken }]);
    expect(store.get('big')).toEqual(bytes(200));
    clock.advance(5000);
    disk.broken = undefined;
    expect(store.spill(1)).toBe(60);
  });
});

it('a result that cannot be read back is lost, and the store knows it no more', () => {
  const { store, disk, lost } = world();
  store.set('a', bytes(60));
  store.set('b', bytes(60));
  disk.files.delete('a');
  expect(store.get('a')).toBeUndefined();
  expect(lost).toEqual(['a']);
  expect([store.has('a'), store.nbytes, store.spilledBytes]).toEqual([false, 60, 0]);
});

it('whatever is done in whatever order, nothing is lost and the books are right', () => {
  const action = fc.record({
    what: fc.constantFrom('set', 'set', 'get', 'delete', 'spill', 'break', 'mend'),
    key: fc.nat(7).map((index) => `k${index}`),
    nbytes: fc.nat(130),
    fill: fc.nat(255),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const { store, disk, ram, lost, clock } = world({ maxSpillBytes: 300 });
      const model = new Map<string, Uint8Array>();
      for (const { what, key, nbytes, fill } of actions) {
        if (what === 'set') {
          model.set(key, bytes(nbytes, fill));
          store.set(key, bytes(nbytes, fill));
        } else if (what === 'get') expect(store.get(key)).toEqual(model.get(key));
        else if (what === 'delete') expect(store.delete(key)).toBe(model.delete(key));
        else if (what === 'spill') store.spill(nbytes);
        else disk.broken = what === 'break' ? new Error('full') : undefined;
        clock.advance(fill * 40);
        const total = [...model.values()].reduce((sum, value) => sum + value.byteLength, 0);
        expect(store.nbytes).toBe(total);
        expect(store.ramBytes).toBe(ram.nbytes);
        expect(store.diskBytes).toBeLessThanOrEqual(300);
        expect([...store.keys()].sort()).toEqual([...model.keys()].sort());
      }
      for (const [key, value] of model) expect(store.get(key)).toEqual(value);
      expect(lost).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
