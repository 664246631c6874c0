import { describe, expect, it, test } from 'vitest';
import {
  allowedBy,
  check,
  checkCall,
  mistakeIn,
  pathText,
  type Schema,
} from '../../../core/shared/schema.ts';
import { rootish } from '../../../policies/queuing/root-ish.ts';

function problemsOf(schema: object, value: unknown): string[] {
  return check(schema, value).problems.map(({ at, message }) => `${pathText(at, '')} ${message}`);
}

const one = (rule: Schema): object => ({ type: 'object', properties: { x: rule } });

describe('a value is checked by its rule', () => {
  it.each<[Schema, right: unknown, wrong: unknown, message: string]>([
    [{ type: 'string' }, '', 1, 'must be text (got 1)'],
    [{ type: 'string', minLength: 1 }, 'a', '', 'must be text that is not empty (got "")'],
    [
      { type: 'string', maxLength: 2 },
      'ab',
      'abc',
      'must be text of 0 to 2 characters (got "abc")',
    ],
    [
      { type: 'string', pattern: '^a', default: 'ab' },
      'a',
      'b',
      'must be text that matches ^a, as "ab" does (got "b")',
    ],
    [
      { type: 'number', multipleOf: 0.1 },
      0.3,
      0.35,
      'must be a number divisible by 0.1 (got 0.35)',
    ],
    [{ type: 'number' }, 1.5, NaN, 'must be a number (got NaN)'],
    [{ type: 'number', exclusiveMinimum: 0 }, Infinity, 0, 'must be a number above 0 (got 0)'],
    [
      { type: 'number', minimum: 0, maximum: Number.MAX_VALUE },
      0,
      Infinity,
      'must be a number of at least 0 and finite (got Infinity)',
    ],
    [{ type: 'integer', minimum: 0 }, 0, -1, 'must be a whole number of at least 0 (got -1)'],
    [{ type: 'integer' }, 3, Infinity, 'must be a whole number (got Infinity)'],
    [
      { type: 'integer', infinite: true },
      Infinity,
      1.5,
      'must be a whole number, or inf (got 1.5)',
    ],
    [
      { type: 'integer', minimum: 1, maximum: 64 },
      64,
      65,
      'must be a whole number from 1 to 64 (got 65)',
    ],
    [{ type: 'boolean' }, false, 0, 'must be true or false (got 0)'],
    [{ type: 'array' }, [], {}, 'must be a list (got {})'],
    [{ type: 'array', minItems: 1 }, [1], [], 'must be a list that is not empty (got [])'],
    [{ type: 'array', uniqueItems: true }, [1, 2], [1, 1], 'must be a list (got [1,1])'],
    [{ type: 'object' }, {}, [], 'must be an object (got [])'],
    [{ type: 'function' }, check, {}, 'must be a function (got {})'],
    [{ methods: ['run'] }, { run: check }, {}, 'must be an object with run (got {})'],
    [{ bytes: true }, new Uint8Array(1), 'a', 'must be bytes (got "a")'],
    [{ enum: ['raise', 'skip'] }, 'skip', 5, 'must be one of raise, skip (got 5)'],
    [
      { enum: ['raise', 'skip'] },
      'raise',
      'rase',
      'must be one of raise, skip (got "rase"); did you mean "raise"?',
    ],
    [{ extension: true }, check, 7, 'must be a name, a path or a package (got 7)'],
    [
      { oneOf: [{ type: 'boolean' }, { const: 'auto' }] },
      'auto',
      'no',
      'must be true or false or "auto" (got "no")',
    ],
    [
      { anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1 },
      {},
      'must be one of several forms (got {})',
    ],
    [{ allOf: [{ type: 'integer' }, { minimum: 2 }] }, 2, 2.5, 'must be a whole number (got 2.5)'],
    [{ description: 'Not yet.', not: {} }, undefined, 1, 'cannot be set. Not yet.'],
    [
      { unit: 'ms', minimum: 1 },
      '2s',
      0,
      'must be a time such as "2s" or "100 ms" of at least 1 ms (got 0)',
    ],
    [
      { unit: 'ms', infinite: true, minimum: 0 },
      null,
      'soon',
      'must be a time such as "2s" or "100 ms", or inf (got "soon")',
    ],
    [{ type: 'number', wanted: 'a share' }, 1, '1', 'must be a share (got "1")'],
  ])('%j takes %j and refuses %j', (rule, right, wrong, message) => {
    expect(problemsOf(one(rule), { x: right })).toEqual([]);
    expect(problemsOf(one(rule), { x: wrong })).toEqual([`x ${message}`]);
  });

  it('with defaults, in base units, at every depth', () => {
    const rule = one({
      type: 'object',
      default: {},
      properties: {
        every: { unit: 'ms', type: ['number', 'string'], default: '2s' },
        size: { unit: 'bytes', default: 0 },
      },
    });
    expect(check(rule, {}).value).toEqual({ x: { every: 2000, size: 0 } });
    expect(check(rule, { x: { size: '1 KiB', every: null } }).value).toEqual({
      x: { every: 2000, size: 1024 },
    });
  });

  it('and every problem is found, with its path', () => {
    const items: Schema = { type: 'array', items: { type: 'string' } };
    const rule: Schema = {
      ...{ type: 'object', required: ['name', 'list'] },
      properties: { name: { type: 'string' }, list: items },
    };
    expect(problemsOf(rule, { nam: 1, list: ['a', 1, null] })).toEqual([
      'list[1] must be text (got 1)',
      'list[2] must be text (got null)',
      'nam is not known; did you mean "name"?',
      'name must be text (got nothing)',
    ]);
  });

  it('parts without a rule stay the same objects', () => {
    const free = { a: null };
    const { value } = check(one({}), { x: free });
    expect((value as { x: object }).x).toBe(free);
  });

  it('deeper than the root, unknown keys are taken unless the rule forbids them', () => {
    const inner: Schema = { type: 'object', properties: { a: {} } };
    expect(problemsOf(one(inner), { x: { other: 1 } })).toEqual([]);
    const closed = { ...inner, additionalProperties: false };
    expect(problemsOf(one(closed), { x: { other: 1 } })).toEqual([
      'x.other is not known; there are a',
    ]);
  });

  it.each([0, -1, NaN, 'lots', true])('a saturation of %s says what is allowed', (saturation) => {
    const { problems } = check(rootish.optionsSchema as object, { workerSaturation: saturation });
    expect(problems.map(({ message }) => message)).toEqual([
      `must be a number above 0 or "inf" (got ${Number.isNaN(saturation) ? 'NaN' : JSON.stringify(saturation)})`,
    ]);
  });

  it('by the alternative that has its form, when none fits', () => {
    const limit: Schema = { type: 'object', properties: { max: { type: 'integer', minimum: 1 } } };
    const rule = one({ anyOf: [limit, { type: 'function' }] });
    expect(problemsOf(rule, { x: { max: 0 } })).toEqual([
      'x.max must be a whole number of at least 1 (got 0)',
    ]);
    expect(problemsOf(rule, { x: 5 })).toEqual(['x must be an object or a function (got 5)']);
  });

  it('a rule that says too much is not put into words', () => {
    expect(allowedBy({ anyOf: [{ type: 'string' }, { not: {} }] })).toBeUndefined();
  });
});

describe('the options of a call', () => {
  interface Options {
    readonly name?: string;
    readonly timeoutMs?: number;
  }
  const rules = { name: { type: 'string' }, timeoutMs: { type: 'number', minimum: 0 } } as const;
  const call = (options: unknown): Options =>
    checkCall<Options>('client.scatter', options as Options, rules, 'ERR_GRAPH_INVALID');

  test('that are undefined count as not given, null does not', () => {
    expect(call({ name: undefined, timeoutMs: 1 })).toEqual({ timeoutMs: 1 });
    expect(() => call({ name: null })).toThrow('client.scatter: name must be text (got null)');
  });

  test('are refused with all that is wrong, and what is meant', () => {
    expect(() => call({ nam: 'x', timeoutMs: -1 })).toThrow(
      expect.objectContaining({
        code: 'ERR_GRAPH_INVALID',
        message:
          'client.scatter: timeoutMs must be a number of at least 0 (got -1); nam is not known; did you mean "name"?',
        data: expect.objectContaining({ call: 'client.scatter', option: 'timeoutMs' }) as object,
      }),
    );
    expect(() => call({ timeout: 1 })).toThrow('did you mean "timeoutMs"?');
    expect(() => call({ else: 1 })).toThrow('else is not known; there are name, timeoutMs');
    expect(() => call(5)).toThrow('client.scatter: its argument must be an object (got 5)');
  });
});

describe('a mistake in a rule from outside is found', () => {
  it.each<[unknown, string | undefined]>([
    [{ type: 'object', properties: { a: { type: 'string' } } }, undefined],
    [{ $schema: 'x', additionalProperties: false }, undefined],
    [{ type: 'text' }, 'type must be one of string, number, integer'],
    [
      { properties: { a: { minimun: 1 } } },
      'properties.a.minimun is not a known keyword; did you mean "minimum"?',
    ],
    [{ properties: [] }, 'properties must be an object (got [])'],
    [{ properties: { a: { items: true } } }, 'properties.a.items must be an object (got true)'],
    [{ properties: { a: { not: false } } }, 'properties.a.not must be an object (got false)'],
    [{ items: { minimum: '1' } }, 'items.minimum must be a number (got "1")'],
    [{ anyOf: [5] }, 'anyOf["0"] must be an object (got 5)'],
    [{ unit: 'min' }, 'unit must be one of ms, s, bytes, share (got "min")'],
    [{ pattern: '(' }, 'pattern: Invalid regular expression'],
    [{ if: {} }, 'if is not a known keyword'],
    [5, 'it must be an object (got 5)'],
  ])('%j', (rule, mistake) => {
    if (mistake === undefined) expect(mistakeIn(rule)).toBeUndefined();
    else expect(mistakeIn(rule)).toContain(mistake);
  });
});
