import type { SchedulerIdentity } from '../../client/index.ts';
import { sizeText, textTable } from '../text-table.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

const TITLES = ['name', 'address', 'status', 'threads', 'tasks', 'results', 'stored', 'memory'];

/** `yardmaster workers`. */
export function workersCommand(flags: ClientFlags): Promise<number> {
  return withClient(flags, 'workers', async (client) => {
    const { workers } = await client.identity();
    const text = workers.length === 0 ? 'no workers' : textTable(TITLES, workers.map(rowOf));
    print(workers, text, flags);
    return 0;
  });
}

function rowOf(worker: SchedulerIdentity['workers'][number]): (string | number)[] {
  const { name, address, status, threadCount, processingCount, resultCount, nbytes } = worker;
  const { metrics, memoryLimitBytes } = worker;
  const limit = memoryLimitBytes > 0 ? ` of ${sizeText(memoryLimitBytes)}` : '';
  const memory = `${sizeText(metrics.memoryBytes)}${limit}`;
  const counts = [threadCount, processingCount, resultCount];
  return [name, address, status, ...counts, sizeText(nbytes), memory];
}
