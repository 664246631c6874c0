import { countOf } from '../../../../core/util/values.ts';
import { Bar, legend } from '../bar.ts';
import { MEMORY } from '../colours.ts';
import { h, section, setText, Table } from '../dom.ts';
import { bytes, count } from '../format.ts';
import type { MemoryAnswer } from '../../page-messages.ts';
import { get } from '../link.ts';
import { poll, taskLink } from '../task-link.ts';
import type { Around, View } from '../view.ts';

/** The view of memory: who holds what, and what the Active Memory Manager does about it. */
export class Memory implements View {
  private readonly workers = new Table(
    'Memory of the workers',
    ['worker', 'memory', 'results', 'bytes of results', 'limit'],
    'No worker is connected.',
  );
  private readonly results = new Table(
    'The largest results',
    ['key', 'size', 'copies', 'held by'],
    'No results are held.',
  );
  private readonly prefixes = new Table(
    'Results by prefix',
    ['prefix', 'results now', 'bytes produced in all'],
    'No results are held.',
  );
  private readonly amm = h('div');
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly bars = new Map<string, Bar>();
  private readonly links = new Map<string, HTMLElement>();
  private readonly stop: () => void;
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    this.element = h(
      'div',
      {},
      section('Memory of the workers', legend(MEMORY), this.workers.element),
      section('Results by prefix', this.prefixes.element),
      section('The largest results', this.note, this.results.element),
      around.past === undefined && section('Active Memory Manager', this.amm),
    );
    this.stop = poll(around, 2000, async () => {
      this.show(await get<MemoryAnswer>('api/memory'));
    });
  }

  leave(): void {
    this.stop();
  }

  update(): void {
    const { workers, prefixes } = this.around.link.state;
    this.workers.show(
      [...workers.values()].map((row) => {
        const { address, name, results, managed, memoryLimit } = row;
        const parts = MEMORY.map(([kind]) => row[kind]);
        const sum = parts.reduce((total, part) => total + part, 0);
        const scale = Math.max(memoryLimit, sum, 1);
        let bar = this.bars.get(address);
        if (bar === undefined) this.bars.set(address, (bar = new Bar()));
        bar.show(
          MEMORY.map(([kind, colour]) => ({ name: kind, colour, share: row[kind] / scale })),
          MEMORY.map(([kind, , text]) => `${bytes(row[kind])} ${text}`).join(', '),
        );
        const shownLimit = memoryLimit > 0 ? bytes(memoryLimit) : 'none';
        return { key: address, cells: [name, bar.element, results, bytes(managed), shownLimit] };
      }),
    );
    this.prefixes.show(
      [...prefixes.values()]
        .filter(({ memory }) => memory > 0)
        .toSorted((a, b) => b.nbytes - a.nbytes)
        .map(({ name, memory, nbytes }) => ({
          key: name,
          cells: [name, count(memory), bytes(nbytes)],
        })),
    );
  }

  private show({ results, isPart, replicated, amm }: MemoryAnswer): void {
    const { workers } = this.around.link.state;
    const name = (address: string): string => workers.get(address)?.name ?? address;
    this.results.show(
      results.map(({ key, nbytes, workers: holders }) => ({
        key,
        cells: [this.link(key), bytes(nbytes), holders.length, holders.map(name).join(', ')],
      })),
    );
    const part = isPart ? ' Only a part of all results was searched.' : '';
    setText(
      this.note,
      `${countOf(replicated, 'result has', 'results have')} two or more copies.${part}`,
    );
    this.amm.replaceChildren(...this.describe(amm));
  }

  private describe(amm: MemoryAnswer['amm']): HTMLElement[] {
    if (amm === null) return [h('p', {}, 'It is not there.')];
    const entries = Object.entries(amm).filter(([, value]) => typeof value !== 'object');
    const { policies, lastRound } = amm as {
      policies?: readonly { readonly id?: unknown; readonly name?: string }[];
      lastRound?: Readonly<Record<string, unknown>> | null;
    };
    const list = h(
      'dl',
      {},
      ...entries.flatMap(([title, value]) => [h('dt', {}, title), h('dd', {}, String(value))]),
    );
    const names = (policies ?? []).map(({ name = '' }) => name);
    const parts: HTMLElement[] = [
      list,
      h('p', {}, names.length === 0 ? 'It has no policies.' : `Policies: ${names.join(', ')}.`),
    ];
    if (lastRound !== undefined && lastRound !== null) {
      parts.push(h('h3', {}, 'Last round'), h('pre', {}, JSON.stringify(lastRound, undefined, 2)));
    }
    return parts;
  }

  private link(key: string): HTMLElement {
    let link = this.links.get(key);
    if (link === undefined) this.links.set(key, (link = taskLink(this.around, key)));
    return link;
  }
}
