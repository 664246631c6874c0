import { expect, it } from 'vitest';
import { allowedValues, check } from '../../../core/config/check.ts';
import { rootish } from '../../../policies/queuing/root-ish.ts';

it.each([
  [0, '0'],
  [-1, '-1'],
  [NaN, 'NaN'],
  ['lots', '"lots"'],
  [true, 'true'],
])('a saturation of %s is refused with what is allowed', (workerSaturation, got) => {
  const { problems } = check(rootish.optionsSchema as object, { workerSaturation });
  expect(problems.map(({ message }) => message)).toEqual([
    `must be a number above 0 or "inf" (got ${got})`,
  ]);
});

it.each([
  [{ type: 'integer', minimum: 1, maximum: 64 }, 'an integer of at least 1 and at most 64'],
  [{ enum: ['a', 'b'] }, '"a" or "b"'],
  [{ type: ['string', 'null'] }, 'a string'],
  [{ oneOf: [{ type: 'boolean' }, { const: 'auto' }] }, 'a boolean or "auto"'],
  [{ anyOf: [{ type: 'string' }, { not: {} }] }, undefined],
  [{}, undefined],
])('the values that %j allows are put into words', (schema, text) => {
  expect(allowedValues(schema)).toBe(text);
});
