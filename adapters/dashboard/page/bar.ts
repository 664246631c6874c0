import { h } from './dom.ts';

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
