import { defineTasks } from 'yardmaster';

export const { fail, square } = defineTasks(import.meta.url, {
  square: (x) => x * x,
  fail: () => {
    throw new Error('as it was told');
  },
});
