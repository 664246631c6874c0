/** The parts of JSON schema that `core/messages/messages.schema.json` uses. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly $ref?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly bytes?: unknown;
}

/** Random numbers that a seed repeats: mulberry32. */
export class Random {
  constructor(private state: number) {}

  /** From 0 on, below `bound`. */
  below(bound: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  }

  one<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  chance(of: number): boolean {
    return this.below(of) === 0;
  }
}

/** Few, so that messages concern the same things. */
const NAMES = [
  'a',
  'b',
  'c',
  'x-1',
  'x-2',
  'tcp://127.0.0.1:1',
  'hostile-1',
  '__proto__',
  'constructor',
];

const deep = (): unknown => Array.from({ length: 190 }).reduce<unknown>((inner) => [inner], null);

/** Values that no field expects. */
const HOSTILE: readonly (() => unknown)[] = [
  () => null,
  () => -1,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => 1e308,
  () => -1e308,
  () => 2 ** 53 - 1,
  () => 0.5,
  () => '',
  () => 'x'.repeat(100_000),
  () => '\u001B[31m\r\nroot: \u0007\u202E',
  () => '\uD800',
  () => true,
  () => ({}),
  () => [],
  () => [null],
  () => [['a']],
  () => ({ constructor: { prototype: null }, toString: 1, then: 1, length: -1 }),
  deep,
  () => Array.from({ length: 10_000 }, () => null),
  () => Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, index])),
  () => new Uint8Array(1000),
];

/** Messages made from their schema: right ones, and ones with something wrong somewhere. */
export class SchemaValues {
  constructor(
    private readonly definitions: Readonly<Record<string, Schema>>,
    private readonly random: Random,
  ) {}

  /** Fulfils the schema, but for bounds between fields. */
  valid(name: string): Record<string, unknown> {
    return this.value(this.definitions[name] ?? {}, 0) as Record<string, unknown>;
  }

  /** As `valid`, with up to three mutations. */
  hostile(name: string): Record<string, unknown> {
    const message = this.valid(name);
    for (let count = this.random.below(4); count > 0; count--) this.mutate(message);
    return message;
  }

  /** What some field may well expect. */
  plausible(): unknown {
    const { random } = this;
    const name = (): string => random.one(NAMES);
    switch (random.below(8)) {
      case 0:
        return random.below(5);
      case 1:
        return random.chance(2);
      case 2:
        return [name(), name()];
      case 3:
        return { [`k-${name()}`]: random.below(9) };
      case 4:
        return { [`k-${name()}`]: [name()] };
      case 5:
        return new Uint8Array(random.below(50));
      default:
        return name();
    }
  }

  garbage(): unknown {
    return this.random.one(HOSTILE)();
  }

  private mutate(message: object): void {
    let target = message as Record<string, unknown>;
    for (;;) {
      const fields = Object.keys(target);
      const field = fields.length === 0 ? 'more' : this.random.one(fields);
      const inner = target[field];
      if (
        typeof inner === 'object' &&
        inner !== null &&
        !(inner instanceof Uint8Array) &&
        !this.random.chance(3)
      ) {
        target = inner as Record<string, unknown>;
        continue;
      }
      const kind = this.random.below(6);
      if (kind === 0 && !Array.isArray(target)) Reflect.deleteProperty(target, field);
      else if (kind === 1) target[`more${this.random.below(3)}`] = this.garbage();
      else if (kind === 2 && Array.isArray(target))
        target.push(...(target as unknown[]).slice(0, 5));
      else if (field !== '__proto__') target[field] = this.garbage();
      return;
    }
  }

  private value(schema: Schema, depth: number): unknown {
    const { random } = this;
    if (schema.$ref !== undefined) {
      const name = decodeURIComponent(schema.$ref.replace('#/definitions/', ''));
      return this.value(this.definitions[name] ?? {}, depth + 1);
    }
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return random.one(schema.enum);
    if (schema.bytes !== undefined) return new Uint8Array(random.below(50));
    const type = typeof schema.type === 'object' ? random.one(schema.type) : schema.type;
    switch (type) {
      case 'object':
        return this.fields(schema, depth);
      case 'array':
        return this.items(schema, depth);
      case 'string':
        return random.one(NAMES);
      case 'integer':
        return this.within(schema, random.below(4));
      case 'number':
        return this.within(schema, random.one([0, 1, 0.5, 3, 1e6]));
      case 'boolean':
        return random.chance(2);
      case 'null':
        return null;
      case undefined:
      default:
        return random.one([undefined, 1, 'a', { a: 1 }, ['a']]);
    }
  }

  private fields(schema: Schema, depth: number): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      const isNeeded = schema.required?.includes(name) === true;
      if (isNeeded || (depth < 6 && this.random.chance(2)))
        found[name] = this.value(field, depth + 1);
    }
    const { additionalProperties: more } = schema;
    if (typeof more === 'object' && depth < 6) {
      for (let count = this.random.below(3); count > 0; count--) {
        const name = this.random.one(NAMES);
        if (name !== '__proto__') found[name] = this.value(more, depth + 1);
      }
    }
    return found;
  }

  private items({ items = {}, minItems = 0, maxItems = 3 }: Schema, depth: number): unknown[] {
    const most = depth < 6 ? Math.max(minItems, Math.min(maxItems, 3)) : minItems;
    const count = minItems + this.random.below(most - minItems + 1);
    return Array.from({ length: count }, () => this.value(items, depth + 1));
  }

  private within({ minimum = -Infinity, maximum = Infinity }: Schema, value: number): number {
    return Math.min(Math.max(value, minimum), maximum);
  }
}
