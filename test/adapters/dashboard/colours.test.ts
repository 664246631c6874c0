import { expect, it } from 'vitest';

type Named = readonly (readonly [name: string, colour: string, text: string])[];

// Of the pages, whose other parts know a document.
const PAGE = '../../../adapters/dashboard/page/colours.ts';
const { ACTION_COLOURS, MEMORY, PALETTE, STATES } = (await import(PAGE)) as {
  readonly ACTION_COLOURS: Readonly<Record<string, string>>;
  readonly MEMORY: Named;
  readonly PALETTE: readonly string[];
  readonly STATES: Named;
};

/** What is looked at side by side: prefixes beside states, actions and kinds of memory. */
const COLOURS = new Map([
  ...PALETTE.map((colour, k) => [`prefix ${k}`, colour] as const),
  ...STATES.map(([state, colour]) => [state, colour] as const),
  ...Object.entries(ACTION_COLOURS),
]);
/** Equal on purpose: they are told apart by neither place nor meaning. */
const SAME = new Set(['disk-read disk-write', 'deserialize other']);
/** Distance in OKLab, of 100, at which two colours of small areas are told apart beside each other. */
const LEAST = 6.5;

it('no colour of a prefix, a state or an action is near another', () => {
  const near = [...COLOURS].flatMap(([name, colour], k) =>
    [...COLOURS].slice(k + 1).flatMap(([other, second]) => {
      const apart = distance(colour, second);
      return apart >= LEAST || SAME.has(`${name} ${other}`) ? [] : [`${name} ${other} ${apart}`];
    }),
  );
  expect(near).toEqual([]);
});

it('no kind of memory has the colour of another', () => {
  for (const [name, colour] of MEMORY)
    for (const [other, second] of MEMORY)
      if (name !== other) expect(distance(colour, second)).toBeGreaterThan(LEAST);
});

function distance(one = '', other = ''): number {
  const [a, b] = [oklab(one), oklab(other)];
  return 100 * Math.hypot(...a.map((value, k) => value - (b[k] ?? 0)));
}

/** By B. Ottosson, from sRGB. */
function oklab(colour: string): number[] {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const share = parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}
