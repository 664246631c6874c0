import { defineTasks } from 'yardmaster';

export const { square } = defineTasks(import.meta.url, { square: (x) => x * x });
