/** Compiles only while the types of the client say what they promise. */
import {
  type Client,
  type Future,
  type Gathered,
  ref,
  task,
} from '../../../adapters/client/index.ts';
import type { TaskFunction, TaskFunctionOf } from '../../../adapters/tasks/index.ts';

declare const client: Client;
declare const first: TaskFunctionOf<<T>(items: readonly T[]) => T>;
declare const inc: TaskFunction<[x: number], number>;
declare const later: TaskFunction<[name: string, times?: number], Promise<Date>>;
declare const total: TaskFunction<[numbers: readonly number[], scale?: { by: number }], number>;
declare const many: TaskFunction<readonly [first: string, ...rest: number[]], string>;

/** A function with type parameters keeps them. */
export const called: number = first([1, 2]);
export const instantiated: Future<number> = client.submit(first<number>, [1, 2]);
export const instances: Future<string>[] = client.map(first<string>, [['a'], ['b']]);
// @ts-expect-error an argument of a wrong type for this instance
client.submit(first<number>, ['one']);

export const one: Future<number> = client.submit(inc, 1);
export const date: Future<Date> = client.submit(later, 'x');
export const nested: Future<number> = client.submit(total, [one, 2, one], { by: one });
export const rest: Future<string> = client.submit(many, 'a', 1, one, 3);
export const withOptions: Future<number> = client.with({ retries: 1 }).submit(inc, one);
export const mapped: Future<number>[] = client.map(inc, [1, one, 3]);
export const chunked: AsyncGenerator<number> = client.map(inc, [1, one, 3], { chunk: 'auto' });
export const outcomes: AsyncGenerator<number | Error> = client.map(inc, [1], {
  chunk: 8,
  errors: 'return',
});
// @ts-expect-error An error may come in the place of a number.
export const sure: AsyncGenerator<number> = client.map(inc, [1], { chunk: 8, errors: 'return' });
export const generic: Future<unknown> = one;
client.setPriority([one, { deep: date }], 1, { inputs: 'keep' });
client.setPriority(new Map<Future<unknown>, number>([[one, 1]]));
// @ts-expect-error a priority is a number
client.setPriority(one, 'high');

export const result: Promise<Date> = date.result();

// @ts-expect-error an argument of a wrong type
client.submit(inc, 'one');
// @ts-expect-error the future of a wrong type
client.submit(inc, date);
// @ts-expect-error one argument too many
client.submit(inc, 1, 2);
// @ts-expect-error one argument too few
client.submit(total);
// @ts-expect-error a wrong future deep inside
client.submit(total, [date]);
// @ts-expect-error not an option
client.with({ retry: 1 });
// @ts-expect-error a closure is not a task
client.submit((x: number) => x + 1, 1);

const graph = {
  a: task(inc, 1),
  b: task(later, 'b'),
  c: task(total, [ref('a'), ref<number>('a'), one]),
};
export const c: Future<number> = client.compute(graph, 'c');
export const both: readonly [Future<Date>, Future<number>] = client.compute(graph, ['b', 'a']);
// @ts-expect-error not in the graph
client.compute(graph, 'd');
// @ts-expect-error a ref of a wrong type
task(inc, ref<string>('a'));
// @ts-expect-error an argument of a wrong type in a graph
task(inc, 'one');

export const gathered: Promise<{ n: number; list: Date[]; same: string }> = client.gather({
  n: one,
  list: [date, date],
  same: 'text',
});
export const tuple: Gathered<readonly [Future<number>, 'x']> = [1, 'x'];
export const scattered: Promise<Future<string>[]> = client.scatter(['a', 'b']);
export const named: Promise<{ a: Future<number>; b: Future<string> }> = client.scatter({
  a: 1,
  b: 'x',
});

export async function returnsFuture(): Promise<Future<number>> {
  return Promise.resolve(client.submit(inc, 1));
}
