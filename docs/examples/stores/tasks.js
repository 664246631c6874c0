import { defineTasks, workerClient } from 'yardmaster';

export const { count, countAll } = defineTasks(import.meta.url, {
  count: (text) => {
    process.stdout.write(`counts ${text.length}\n`);
    return { words: text.split(' ').length, text };
  },
  // The client of a task keeps results in the store of its worker.
  countAll: async (texts) => {
    const client = await workerClient();
    const counts = await client.gather(client.with({ persist: true }).map(count, texts));
    return counts.map(({ words }) => words);
  },
});
