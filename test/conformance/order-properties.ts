/** The expressions in which properties of an order are recorded: `{ lt: [{ ord: [0, 'a'] }, 3] }`. */

/** What properties can ask of an order. */
export interface OrderFacts {
  /** Ranks of the keys, by graph. */
  readonly rankOf: (graph: number, key: string) => number;
  /** Results kept when each task runs, by graph. */
  readonly pressure: (graph: number) => readonly number[];
}

type Value = unknown;
type Operator = (argument: Value, evaluate: (expression: Value) => Value) => Value;

/** Evaluates an expression. @throws Error when it has an operator that is not known */
export function evaluate(expression: Value, facts: OrderFacts): Value {
  const operators: Readonly<Record<string, Operator>> = { ...factOperators(facts), ...OPERATORS };
  const visit = (node: Value): Value => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const [[name, argument] = ['nothing', undefined]] = Object.entries(node);
    const operator = operators[name];
    if (operator === undefined) throw new Error(`there is no operator "${name}"`);
    return operator(argument, visit);
  };
  return visit(expression);
}

function factOperators({ rankOf, pressure }: OrderFacts): Record<string, Operator> {
  return {
    ord: (argument) => {
      const [graph, key] = argument as [number, string];
      return rankOf(graph, key);
    },
    nthOrder: (argument) => {
      const [graph, position, keys] = argument as [number, number, string[]];
      return ascending(keys.map((key) => rankOf(graph, key)))[position];
    },
    peakPressure: (graph) => Math.max(0, ...pressure(graph as number)),
    pressureSlice: (argument) => {
      const [graph, start, end] = argument as [number, number, number];
      return pressure(graph).slice(start, end < 0 ? undefined : end);
    },
  };
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  nthSorted: (argument, visit) => {
    const [position, list] = argument as [number, Value];
    return ascending(visit(list) as number[])[position];
  },
  sorted: (list, visit) => ascending(visit(list) as number[]),
  distinct: (list, visit) => new Set(visit(list) as Value[]),
  set: (list, visit) => new Set(visit(list) as Value[]),
  map: (entries, visit) =>
    Object.fromEntries(
      Object.entries(entries as object).map(([key, value]) => [key, visit(value)]),
    ),
  max: onNumbers((numbers) => Math.max(...numbers)),
  min: onNumbers((numbers) => Math.min(...numbers)),
  sum: onNumbers((numbers) => numbers.reduce((sum, number) => sum + number, 0)),
  countTrue: (list, visit) => (visit(list) as Value[]).filter(Boolean).length,
  abs: (number, visit) => Math.abs(visit(number) as number),
  sub: onPair((a, b) => a - b),
  add: onPair((a, b) => a + b),
  mul: onPair((a, b) => a * b),
  lt: onPair((a, b) => a < b),
  le: onPair((a, b) => a <= b),
  gt: onPair((a, b) => a > b),
  ge: onPair((a, b) => a >= b),
  eq: (pair, visit) => isEqual(...(visit(pair) as [Value, Value])),
  ne: (pair, visit) => !isEqual(...(visit(pair) as [Value, Value])),
  in: (pair, visit) => contains(visit(pair)),
  notIn: (pair, visit) => !contains(visit(pair)),
  not: (value, visit) => !visit(value),
  and: (list, visit) => (list as Value[]).every((value) => Boolean(visit(value))),
  or: (list, visit) => (list as Value[]).some((value) => Boolean(visit(value))),
  implies: (pair, visit) => {
    const [condition, consequence] = pair as [Value, Value];
    return !visit(condition) || Boolean(visit(consequence));
  },
};

function onNumbers(combine: (numbers: readonly number[]) => number): Operator {
  return (list, visit) => combine([...(visit(list) as Iterable<number>)]);
}

function onPair(combine: (a: number, b: number) => Value): Operator {
  return (pair, visit) => combine(...(visit(pair) as [number, number]));
}

function ascending(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b);
}

function contains(pair: Value): boolean {
  const [value, among] = pair as [Value, Set<Value> | readonly Value[]];
  return new Set(among).has(value);
}

/** Sets compare without order, everything else as JSON does. */
function isEqual(a: Value, b: Value): boolean {
  return JSON.stringify(plain(a)) === JSON.stringify(plain(b));
}

function plain(value: Value): Value {
  if (value instanceof Set)
    return { set: [...value].map((item) => JSON.stringify(plain(item))).sort() };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item)]));
}
