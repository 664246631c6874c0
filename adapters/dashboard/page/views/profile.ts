import { countOf } from '../../../../core/util/values.ts';
import type { ProfileAnswer } from '../../page-messages.ts';
import { button, figure, h, section, setText, Table } from '../dom.ts';
import { clock, count, percent, place, seconds } from '../format.ts';
import { FlameGraph } from '../flame.ts';
import { get } from '../link.ts';
import { poll } from '../task-link.ts';
import type { Around, View } from '../view.ts';

/** Shows samples of the calls of running tasks, over all workers or of one prefix. */
export class Profile {
  private readonly prefix = h('select', { id: 'profile-prefix' });
  private readonly note = h('p', { class: 'note', role: 'status' }, 'Sampling begins.');
  private readonly flame = new FlameGraph();
  private readonly calls = new Table(
    'Functions',
    ['function', 'place', 'by itself', 'with what it calls', 'share'],
    'There are no samples: tasks computed for a shorter time, or their workers take none (Dask: distributed.worker.profile.enabled).',
    '',
  );
  readonly element: HTMLElement;

  constructor() {
    this.prefix.append(h('option', { value: '' }, 'all prefixes'));
    const label = h('label', { for: 'profile-prefix' }, 'Tasks of');
    this.element = h(
      'div',
      {},
      section(
        'Profile',
        h(
          'p',
          { class: 'toolbar' },
          label,
          this.prefix,
          button('Show all', () => this.flame.reset()),
        ),
        this.note,
        this.flame.element,
      ),
      section('Functions', this.calls.element),
    );
  }

  show(answer: ProfileAnswer): void {
    const { tree: all, intervalMs, sinceS, workers, silent, reason } = answer;
    this.prefix.onchange = () => this.show(answer);
    const known = new Set([...this.prefix.options].map(({ value }) => value));
    for (const { name } of all.children)
      if (!known.has(name)) this.prefix.append(h('option', { value: name }, name));
    const { value: prefix } = this.prefix;
    const none = { ...all, name: prefix, count: 0, children: [] };
    const tree = prefix === '' ? all : (all.children.find(({ name }) => name === prefix) ?? none);
    this.flame.show(tree, intervalMs);
    const since = workers > 0 ? ` since ${clock(sinceS)}, every ${intervalMs} ms` : '';
    const why =
      reason ??
      'tasks run in the thread of the worker; in the modes "threads" and "processes" they are sampled';
    const others = silent > 0 ? ` ${countOf(silent, 'worker')} cannot be sampled: ${why}.` : '';
    setText(
      this.note,
      `${count(tree.count)} samples of ${countOf(workers, 'worker')}${since}; a box is as wide as the time in it.${others}`,
    );
    const sums = new Map<string, { name: string; at: string; own: number; all: number }>();
    const add = (node: typeof tree, callers: readonly string[]): void => {
      const { name, url, line } = node;
      const key = `${name} ${url} ${line}`;
      const sum = sums.get(key) ?? {
        name,
        at: place(node),
        own: 0,
        all: 0,
      };
      sums.set(key, sum);
      const called = node.children.reduce((total, child) => total + child.count, 0);
      sum.own += node.count - called;
      // A function that calls itself is counted once.
      if (!callers.includes(key)) sum.all += node.count;
      for (const child of node.children) add(child, [...callers, key]);
    };
    const roots = prefix === '' ? tree.children : [tree];
    for (const root of roots) for (const child of root.children) add(child, []);
    const spent = (samples: number): number => (samples * intervalMs) / 1000;
    this.calls.show(
      [...sums]
        .toSorted(([, a], [, b]) => b.own - a.own)
        .map(([key, { name, at, own, all }]) => ({
          key,
          cells: [
            name,
            at,
            figure(seconds, spent(own)),
            figure(seconds, spent(all)),
            figure(percent, (100 * own) / tree.count),
          ],
        })),
      30,
    );
  }
}

/** The page of a running cluster. */
export function liveProfile(around: Around): View {
  const profile = new Profile();
  const refresh = async (): Promise<void> => profile.show(await get('api/profile'));
  return { element: profile.element, leave: poll(around, 5000, refresh) };
}
