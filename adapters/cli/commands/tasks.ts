import type { TaskSummary } from '../../../core/api/index.ts';
import { sizeText, textTable } from '../text-table.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';
import { say } from '../terminal.ts';

/** Flags of `tasks`. */
export interface TasksFlags extends ClientFlags {
  readonly state?: string;
  readonly prefix?: string;
  readonly limit?: number;
}

interface PrefixCounts {
  readonly prefix: string;
  readonly states: Readonly<Record<string, number>>;
}

const STATES = ['waiting', 'no-worker', 'queued', 'processing', 'memory', 'erred', 'released'];
const UNKNOWN_CODE = 1;

/** `yardmaster tasks`: counts by prefix; with keys or a selection, the tasks themselves. */
export function tasksCommand(keys: readonly string[], flags: TasksFlags): Promise<number> {
  const { state, prefix, limit } = flags;
  return withClient(flags, 'tasks', async (client) => {
    if (keys.length > 0) {
      const tasks = await client.command<readonly TaskSummary[]>('tasks', { keys });
      print(tasks, tasksText(tasks), flags);
      const known = new Set(tasks.map(({ key }) => key));
      const unknown = keys.filter((key) => !known.has(key));
      if (unknown.length === 0) return 0;
      say(`the scheduler does not know ${unknown.join(', ')}\n`, process.stderr);
      return UNKNOWN_CODE;
    }
    if (state === undefined && prefix === undefined && limit === undefined) {
      const counts = await client.command<readonly PrefixCounts[]>('task-counts');
      print(counts, countsText(counts), flags);
      return 0;
    }
    const selection = Object.fromEntries(
      Object.entries({ state, prefix, limit }).filter(([, value]) => value !== undefined),
    );
    const tasks = await client.command<readonly TaskSummary[]>('list-tasks', selection);
    print(tasks, tasksText(tasks), flags);
    return 0;
  });
}

function countsText(counts: readonly PrefixCounts[]): string {
  if (counts.length === 0) return 'no tasks';
  const total: PrefixCounts = {
    prefix: 'all',
    states: Object.fromEntries(
      STATES.map((state) => [
        state,
        counts.reduce((sum, { states }) => sum + (states[state] ?? 0), 0),
      ]),
    ),
  };
  const shown = counts.length === 1 ? counts : [...counts, total];
  const rows = shown.map(({ prefix, states }) => [
    prefix,
    ...STATES.map((state) => states[state] ?? 0),
  ]);
  return textTable(['prefix', ...STATES], rows);
}

function tasksText(tasks: readonly TaskSummary[]): string {
  if (tasks.length === 0) return 'no tasks';
  const rows = tasks.map(({ key, state, processingOn, whoHas, nbytes }) => [
    key,
    state,
    processingOn ?? whoHas.join(' '),
    nbytes < 0 ? '' : sizeText(nbytes),
  ]);
  return textTable(['key', 'state', 'worker', 'stored'], rows);
}
