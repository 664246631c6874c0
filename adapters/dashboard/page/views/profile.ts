import { countOf } from '../../../../core/util/values.ts';
import type { ProfileAnswer } from '../../page-messages.ts';
import { button, figure, h, on, section, setText, Table } from '../dom.ts';
import { clock, count, percent, seconds } from '../format.ts';
import { FlameGraph } from '../flame.ts';
import { get } from '../link.ts';
import { poll } from '../task-link.ts';
import type { Around, View } from '../view.ts';

/** Shows samples of the calls of running tasks, over all workers or of one prefix. */
export class Profile implements View {
  private readonly prefix = h('select', { id: 'profile-prefix' });
  private readonly note = h('p', { class: 'note', role: 'status' }, 'Sampling begins.');
  private readonly flame = new FlameGraph();
  private readonly calls = new Table(
    'Functions',
    ['function', 'place', 'by itself', 'with what it calls', 'share'],
    'Nothing was computed since sampling began.',
    '',
  );
  readonly leave: () => void;
  readonly element: HTMLElement;

  constructor(around: Around) {
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
    const refresh = async (): Promise<void> => {
      this.show(await get<ProfileAnswer>('api/profile', { prefix: this.prefix.value }));
    };
    on(this.prefix, { change: () => void refresh() });
    this.leave = poll(around, 5000, refresh);
  }

  private show({ tree, intervalMs, sinceS, prefixes, workers, silent }: ProfileAnswer): void {
    const known = new Set([...this.prefix.options].map(({ value }) => value));
    for (const name of prefixes)
      if (!known.has(name)) this.prefix.append(h('option', { value: name }, name));
    this.flame.show(tree, intervalMs);
    const since = workers > 0 ? ` since ${clock(sinceS)}, every ${intervalMs} ms` : '';
    const others = silent > 0 ? ` ${countOf(silent, 'worker')} cannot be sampled.` : '';
    setText(
      this.note,
      `${count(tree.count)} samples of ${countOf(workers, 'worker')}${since}; a box is as wide as the time in it.${others}`,
    );
    const sums = new Map<string, { name: string; place: string; own: number; all: number }>();
    const add = (node: typeof tree, callers: readonly string[]): void => {
      const { name, url, line } = node;
      const key = `${name} ${url} ${line}`;
      const sum = sums.get(key) ?? {
        name,
        place: url === '' ? '' : `${url}:${line}`,
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
    const roots = this.prefix.value === '' ? tree.children : [tree];
    for (const root of roots) for (const child of root.children) add(child, []);
    const spent = (samples: number): number => (samples * intervalMs) / 1000;
    this.calls.show(
      [...sums]
        .toSorted(([, a], [, b]) => b.own - a.own)
        .map(([key, { name, place, own, all }]) => ({
          key,
          cells: [
            name,
            place,
            figure(seconds, spent(own)),
            figure(seconds, spent(all)),
            figure(percent, (100 * own) / tree.count),
          ],
        })),
      30,
    );
  }
}
