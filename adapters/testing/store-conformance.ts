import assert from 'node:assert/strict';
import type { ResultStore } from '../../core/api/index.ts';
import { type Clauses, registerClauses, type TestRunner, Unproven } from './clauses.ts';

/** A store of results and what the clauses need to know about it. */
export interface StoreHarness {
  /** Opens what is the same store for all its callers. */
  open(): ResultStore | Promise<ResultStore>;
  /**
   * Changes what is stored under a key, without the store. The clauses about damage are skipped without it.
   * @param change - the bytes that shall be there instead
   */
  damage?(key: string, change: (stored: Uint8Array) => Uint8Array): Promise<void>;
  /** False for a store whose writes at the same time may leave a mixture, which counts as missing. Default true. */
  readonly isAtomic?: boolean;
  /** After each clause. */
  close?(): void | Promise<void>;
}

/**
 * Registers one test for each clause of the contract in `ResultStore`:
 *
 *     import { describe, it } from 'vitest';
 *     storeConformance('mine', () => ({ open: () => mine.create({ clock }, { folder }) }), { describe, it });
 *
 * @param makeHarness - called for each clause; its store is empty
 * @throws YardmasterError `ERR_CONFIG` when it is no function, or the runner is missing
 */
export function storeConformance(
  name: string,
  makeHarness: () => StoreHarness | Promise<StoreHarness>,
  runner: TestRunner,
): void {
  registerClauses(SUITE, name, makeHarness, runner);
}

class Bench {
  constructor(readonly harness: StoreHarness) {}

  open(): ResultStore | Promise<ResultStore> {
    return this.harness.open();
  }

  async close(): Promise<void> {
    await this.harness.close?.();
  }
}

const keyOf = (index: number): string => `${index}`.padStart(64, '0');
/** Larger than what stores put together. */
const LARGE_BYTES = 100_000;
const filled = (value: number): { readonly type: string; readonly value: Uint8Array } => ({
  type: 'Uint8Array',
  value: new Uint8Array(LARGE_BYTES).fill(value),
});

const DAMAGES: Readonly<Record<string, (stored: Uint8Array) => Uint8Array>> = {
  'cut short': (stored) => stored.subarray(0, stored.byteLength - 1),
  'cut in its beginning': (stored) => stored.subarray(0, 5),
  'something else': () => new Uint8Array(500).fill(120),
};

const CLAUSES: Clauses<Bench> = {
  async 'what was written is read, of any size, also from shared memory'(bench) {
    const store = await bench.open();
    const large = new Uint8Array(new SharedArrayBuffer(3_000_001)).fill(7);
    for (const [index, value] of [new Uint8Array(0), new Uint8Array([1, 2]), large].entries()) {
      await store.write(keyOf(index), { type: 'Größe', value });
      assert.equal(await store.has(keyOf(index)), true);
      const found = await (await bench.open()).read(keyOf(index));
      assert.equal(found?.type, 'Größe');
      assert.equal(Buffer.compare(Buffer.from(found.value), Buffer.from(value)), 0);
    }
  },

  async 'nothing is there that was not written, or was deleted'(bench) {
    const store = await bench.open();
    const isMissing = async (): Promise<void> => {
      assert.equal(await store.has(keyOf(1)), false);
      assert.equal(await store.read(keyOf(1)), undefined);
    };
    await isMissing();
    await store.delete(keyOf(1));
    await store.write(keyOf(1), filled(1));
    await store.delete(keyOf(1));
    await isMissing();
  },

  async 'a result is there as a whole or not at all, and the newest stays'(bench) {
    const store = await bench.open();
    const isWhole = async (): Promise<boolean> => {
      const found = await store.read(keyOf(1));
      const bytes = new Set(found?.value ?? [0]);
      assert.equal(bytes.size, 1, 'a mixture was read');
      return found?.value.byteLength === LARGE_BYTES;
    };
    const writing = Promise.all([1, 2, 3, 4].map((n) => store.write(keyOf(1), filled(n))));
    await isWhole();
    await writing;
    if (bench.harness.isAtomic !== false) assert(await isWhole());
    await store.write(keyOf(1), filled(9));
    assert.equal((await store.read(keyOf(1)))?.value[0], 9);
  },

  async 'many keys at once do not mix'(bench) {
    const store = await bench.open();
    const all = Array.from({ length: 30 }, (_, n) => n);
    await Promise.all(all.map((n) => store.write(keyOf(n), filled(n))));
    const found = await Promise.all(all.map((n) => store.read(keyOf(n))));
    assert.deepEqual(
      found.map((result) => result?.value[0]),
      all,
    );
  },

  async 'a result that is damaged counts as missing, and can be written again'(bench) {
    const { harness } = bench;
    if (harness.damage === undefined) throw new Unproven('the harness has no "damage"');
    const store = await bench.open();
    for (const [what, change] of Object.entries(DAMAGES)) {
      for (const look of ['has', 'read'] as const) {
        await store.write(keyOf(1), filled(1));
        await harness.damage(keyOf(1), change);
        assert.equal((await store[look](keyOf(1))) ?? false, false, `${look} of what is ${what}`);
      }
    }
    await store.write(keyOf(1), filled(1));
    await harness.damage(keyOf(1), (stored) =>
      stored.map((byte, at) => (at === stored.byteLength - 1 ? byte ^ 1 : byte)),
    );
    assert.equal(await store.read(keyOf(1)), undefined, 'a changed byte was read');
    await store.write(keyOf(1), filled(1));
    assert.equal(await store.has(keyOf(1)), true);
  },
};

const SUITE = {
  usage:
    "storeConformance('mine', () => ({ open: () => mine.create({ clock }, options) }), { describe, it })",
  what: 'a store of results',
  clauses: CLAUSES,
  benchOf: (harness: StoreHarness) => new Bench(harness),
};
