import type { CallTree } from '../../../core/api/executor.ts';
import { h, on, setText } from './dom.ts';
import { place, seconds } from './format.ts';

/** Height of a call in pixels. */
const ROW = 22;
/** Colours by module, on which dark text is readable in both themes. */
const COLOURS = ['#ffd8a8', '#b7e1cd', '#c5d8f7', '#f7c8d8', '#e6dcb1', '#d8cdf0'];

/**
 * A flame graph: a call is a box as wide as the time in it, with what it calls below. A click shows one call in full
 * width. Boxes are kept while they stay, so that focus and scroll do. Boxes need no more than a button each, so no library
 * draws them.
 */
export class FlameGraph {
  readonly element = h('div', { class: 'flame', role: 'group', 'aria-label': 'Flame graph' });
  private readonly boxes = new Map<string, HTMLButtonElement>();
  private shown: { readonly tree: CallTree; readonly intervalMs: number } | undefined;
  /** Path of the call in full width. */
  private zoomed = '';

  show(tree: CallTree, intervalMs: number): void {
    this.shown = { tree, intervalMs };
    const seen = new Set<string>();
    let rows = 0;
    const top = this.find(tree) ?? ((this.zoomed = ''), tree);
    const place = (node: CallTree, path: string, row: number, left: number): void => {
      seen.add(path);
      rows = Math.max(rows, row + 1);
      this.draw(node, path, { row, left: left / top.count, width: node.count / top.count });
      let at = left;
      for (const child of node.children.toSorted((a, b) => b.count - a.count)) {
        place(child, pathOf(path, child), row + 1, at);
        at += child.count;
      }
    };
    if (top.count > 0) place(top, this.zoomed === '' ? pathOf('', tree) : this.zoomed, 0, 0);
    for (const [path, box] of this.boxes) {
      if (seen.has(path)) continue;
      box.remove();
      this.boxes.delete(path);
    }
    this.element.style.height = `${rows * ROW}px`;
  }

  /** All calls again. */
  reset(): void {
    this.zoomed = '';
    if (this.shown !== undefined) this.show(this.shown.tree, this.shown.intervalMs);
  }

  private find(tree: CallTree): CallTree | undefined {
    const search = (node: CallTree, path: string): CallTree | undefined => {
      if (path === this.zoomed) return node;
      for (const child of node.children) {
        const childPath = pathOf(path, child);
        if (!this.zoomed.startsWith(childPath)) continue;
        const found = search(child, childPath);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return this.zoomed === '' ? tree : search(tree, pathOf('', tree));
  }

  private draw(
    { name, count, ...at }: CallTree,
    path: string,
    { row, left, width }: { row: number; left: number; width: number },
  ): void {
    const { tree, intervalMs } = this.shown ?? { tree: { count: 1 }, intervalMs: 0 };
    let box = this.boxes.get(path);
    if (box === undefined) {
      box = on(h('button', { type: 'button' }), {
        click: () => {
          this.zoomed = this.zoomed === path ? '' : path;
          if (this.shown !== undefined) this.show(this.shown.tree, this.shown.intervalMs);
        },
      });
      this.boxes.set(path, box);
      this.element.append(box);
    }
    const share = `${((100 * count) / tree.count).toFixed(1)} %`;
    const where = at.url === '' ? '' : ` (${place(at)})`;
    const text = `${name}${where}: ${share}, ${seconds((count * intervalMs) / 1000)}`;
    setText(box, name);
    if (box.title !== text) box.title = text;
    box.setAttribute('aria-label', text);
    Object.assign(box.style, {
      left: `${100 * left}%`,
      width: `${100 * width}%`,
      top: `${row * ROW}px`,
      background: COLOURS[hash(at.url) % COLOURS.length],
    });
  }
}

function pathOf(caller: string, { name, url, line }: CallTree): string {
  return `${caller}\n${name} ${url} ${line}`;
}

function hash(text: string): number {
  let sum = 0;
  for (const character of text) sum = (31 * sum + (character.codePointAt(0) ?? 0)) % 65_521;
  return sum;
}
