import { describe, expect, it } from 'vitest';

import { PyFloat } from '../../../../adapters/dask/wire/codec.ts';
import { KeyTable, reprOf } from '../../../../adapters/dask/wire/key-table.ts';

describe('keys of Dask', () => {
  it('read as Python writes them', () => {
    expect(reprOf(['x', 0])).toBe("('x', 0)");
    expect(reprOf(['x'])).toBe("('x',)");
    expect(reprOf([['a', new PyFloat(1)], null, true, 2n ** 64n])).toBe(
      "(('a', 1.0), None, True, 18446744073709551616)",
    );
    expect(reprOf(["it's", 'say "it\'s"', 'a\\b\n'])).toBe(`("it's", 'say "it\\'s"', 'a\\\\b\\n')`);
    expect(reprOf(new Uint8Array([97, 39, 0, 255]))).toBe(`b"a'\\x00\\xff"`);
    expect(reprOf([1e22, 1.5, -0, 1e-7])).toBe('(1e+22, 1.5, -0.0, 1e-07)');
  });

  it('come back as they were', () => {
    const table = new KeyTable(() => false);
    const key = ['x', 1, new PyFloat(2)];
    expect(table.textOf(key)).toBe("('x', 1, 2.0)");
    expect(table.wireOf("('x', 1, 2.0)")).toBe(key);
    expect(table.wiresOf(['plain', "('x', 1, 2.0)"])).toEqual(['plain', key]);
    expect(table.textOf('plain')).toBe('plain');
    expect(table.size).toBe(1);
  });

  it('collide in the open: a text and a tuple that read the same cannot both be tasks', () => {
    const live = new Set<string>();
    const table = new KeyTable((text) => live.has(text));
    live.add(table.textOf("('x', 0)"));
    expect(() => table.textOf(['x', 0])).toThrow('two keys that read');
    const other = new KeyTable((text) => live.has(text));
    live.clear();
    live.add(other.textOf(['x', 0]));
    expect(() => other.textOf("('x', 0)")).toThrow('two keys that read');
    live.clear();
    expect(other.textOf("('x', 0)")).toBe("('x', 0)");
    expect(other.wireOf("('x', 0)")).toBe("('x', 0)");
  });

  it('are forgotten two sweeps after their tasks', () => {
    const live = new Set<string>();
    const table = new KeyTable((text) => live.has(text));
    live.add(table.textOf(['x', 0]));
    table.textOf(['y', 0]);
    table.sweep();
    expect(table.size).toBe(2);
    table.sweep();
    expect(table.size).toBe(1);
    live.clear();
    table.sweep();
    table.sweep();
    expect(table.size).toBe(0);
  });

  it('are refused when they are no keys', () => {
    const table = new KeyTable(() => false);
    expect(() => table.textOf(new Map())).toThrow('cannot be the key of a task');
    expect(() => table.textsOf(5)).toThrow('a list of keys was expected');
  });
});
