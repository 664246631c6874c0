import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { comparison, type Figures, movements, ofRounds, readFigures } from './compare.ts';
import { pageWith } from './page.ts';
import { atLeast, atMost, type Figure } from './row.ts';

const rate: Figure = { what: 'no-ops', unit: 'tasks per s', value: 100, goal: atLeast(50) };
const cost: Figure = { what: 'no-ops', unit: 'µs', value: 10, goal: atMost(50) };

function figures(...lines: Figure[]): Figures {
  return { date: '2026-01-02T03:04:05.000Z', quick: false, machine: { cpu: 'one' }, lines };
}

describe('rounds of the suite', () => {
  it('become their median, with all that was measured', () => {
    const rounds = [3, 1, 2].map((value) => [{ ...rate, value }]);
    expect(ofRounds(rounds)).toEqual([{ ...rate, value: 2, rounds: [3, 1, 2] }]);
  });

  it('in which a peer was missing leave the reason', () => {
    const line = { name: 'cost', skipped: 'no Dask' };
    expect(ofRounds([[line], [line]])).toEqual([line]);
  });
});

describe('a figure that was measured once', () => {
  it.each([
    [rate, 79, 'worse'],
    [rate, 81, 'same'],
    [rate, 121, 'better'],
    [cost, 12.1, 'worse'],
    [cost, 11.9, 'same'],
    [cost, 7.9, 'better'],
  ] as const)('moves when it changes by more than a fifth: %o, then %d', (was, value, verdict) => {
    expect(movements([was], [{ ...was, value }])[0]).toMatchObject({ verdict });
  });
});

describe('a figure of three rounds and more', () => {
  const before = { ...cost, rounds: [9, 10, 11] };

  it('moves as soon as no round is among those before', () => {
    const [moved] = movements([before], [{ ...cost, value: 8.5, rounds: [8.4, 8.5, 8.6] }]);
    expect(moved).toMatchObject({ ratio: 0.85, low: 8.4 / 11, high: 8.6 / 9, verdict: 'better' });
  });

  it('is the same while one is', () => {
    const [moved] = movements([before], [{ ...cost, value: 8, rounds: [7, 8, 9.5] }]);
    expect(moved?.verdict).toBe('same');
  });
});

it('a comparison names what moved first, and says when the machines differ', () => {
  const after = { ...figures(rate, { ...cost, value: 20 }), machine: { cpu: 'another' } };
  const text = comparison(figures(rate, cost), after);
  expect(text).toMatch(/2026-01-02[^]*µs[^]*2 \(1\.67 to 2\.5\)[^]*worse[^]*tasks per s[^]*same/);
  expect(text).toContain('1 of 2 figures moved.\nThe machines differ');
});

it('the table of the page is made from the figures of the release (otherwise: bench --from --page)', () => {
  const docs = new URL('../../../docs/', import.meta.url);
  const page = readFileSync(new URL('performance.md', docs), 'utf8');
  const { version } = JSON.parse(readFileSync(new URL('../package.json', docs), 'utf8')) as {
    readonly version: string;
  };
  const released = readFigures(new URL(`results/${version}.json`, docs).pathname);
  expect(pageWith(page, released)).toBe(page);
});
