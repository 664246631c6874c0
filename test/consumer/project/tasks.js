import { defineTasks } from 'yardmaster';

export const { square, sum } = defineTasks(import.meta.url, {
  square: (x) => x * x,
  sum: (numbers) => numbers.reduce((total, x) => total + x, 0),
});
