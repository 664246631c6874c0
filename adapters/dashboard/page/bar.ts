import { memoryUsed, type WorkerRow } from '../page-messages.ts';
import { MEMORY } from './colours.ts';
import { type Figure, h, setText } from './dom.ts';
import { bytes } from './format.ts';

/** A part of a bar. */
export interface Part {
  readonly name: string;
  readonly colour: string;
  readonly share: number;
}

/** A bar of coloured parts, which says in words what it shows. */
export class Bar {
  readonly element = h('div', { class: 'bar', role: 'img' });

  show(parts: readonly Part[], label: string): void {
    const { element } = this;
    while (element.children.length < parts.length) element.append(h('span'));
    while (element.children.length > parts.length) element.lastElementChild?.remove();
    parts.forEach(({ name, colour, share }, k) => {
      const part = element.children[k] as HTMLElement;
      part.style.width = `${Math.max(0, Math.min(100, 100 * share)).toFixed(2)}%`;
      part.style.background = colour;
      part.classList.toggle('failed', name === 'erred');
    });
    if (element.getAttribute('aria-label') !== label) {
      element.setAttribute('aria-label', label);
      element.title = label;
    }
  }
}

/** The memory of workers as bars. What is on disk takes none, and stands behind the bar. */
export class MemoryBars {
  private readonly bars = new Map<string, { readonly bar: Bar; readonly element: HTMLElement }>();
  private scale = 1;

  /** To be called before the bars of these workers: those without a limit have one scale, which none of them fills. */
  setScale(workers: Iterable<WorkerRow>): void {
    this.scale = 1;
    for (const row of workers) this.scale = Math.max(this.scale, (4 / 3) * memoryUsed(row));
  }

  show(key: string, row: Pick<WorkerRow, MemoryKind | 'spilled' | 'memoryLimit'>): Figure {
    let found = this.bars.get(key);
    if (found === undefined) {
      const bar = new Bar();
      const element = h('div', { class: 'memory' }, bar.element, h('span'));
      this.bars.set(key, (found = { bar, element }));
    }
    const used = memoryUsed(row);
    const { memoryLimit: limit, spilled } = row;
    const parts = MEMORY.map(([kind, , text]) => `${bytes(row[kind])} ${text}`);
    const of = limit > 0 ? ` of ${bytes(limit)}` : '';
    const onDisk = spilled > 0 ? ` + ${bytes(spilled)} on disk` : '';
    const scale = limit > 0 ? Math.max(limit, used) : Math.max(this.scale, (4 / 3) * used);
    found.bar.show(
      MEMORY.map(([kind, colour]) => ({ name: kind, colour, share: row[kind] / scale })),
      `${bytes(used)}${of === '' ? ', no limit' : of}: ${parts.join(', ')}${onDisk}`,
    );
    setText(found.element.lastChild as Node, `${bytes(used)}${of}${onDisk}`);
    return { shown: found.element, value: used };
  }
}

type MemoryKind = (typeof MEMORY)[number][0];

/** Names beside their colours. */
export function legend(
  entries: readonly (readonly [name: string, colour: string, text: string])[],
): HTMLElement {
  return h(
    'ul',
    { class: 'legend' },
    ...entries.map(([, colour, text]) => {
      const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
      mark.style.background = colour;
      return h('li', {}, mark, text);
    }),
  );
}
