import { countOf } from '../../../../core/util/values.ts';
import { legend, MemoryBars } from '../bar.ts';
import { MEMORY } from '../colours.ts';
import { figure, h, patch, section, setText, Table } from '../dom.ts';
import { bytes, seconds } from '../format.ts';
import type { MemoryAnswer } from '../../page-messages.ts';
import { get } from '../link.ts';
import { poll, taskLink } from '../task-link.ts';
import type { Around, View } from '../view.ts';

/** The view of memory: who holds what, and what the Active Memory Manager does about it. */
export class Memory implements View {
  private readonly workers = new Table(
    'Memory of the workers',
    ['worker', 'memory', 'results', 'bytes of results, those on disk too'],
    'No worker is connected.',
  );
  private readonly results = new Table(
    'The largest results',
    ['key', 'size', 'copies', 'held by'],
    'No results are held.',
  );
  private readonly prefixes = new Table(
    'Results by prefix',
    ['prefix', 'results now', 'bytes now', 'bytes produced ever'],
    'No results are held.',
  );
  private readonly amm = h('div');
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly bars = new MemoryBars();
  /** An answer that came before the state of the cluster. */
  private early: MemoryAnswer | undefined;
  private readonly links = new Map<string, HTMLElement>();
  readonly leave: () => void;
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
    this.leave = poll(around, 2000, async () => {
      this.show(await get<MemoryAnswer>('api/memory'));
    });
  }

  update(): void {
    const { workers } = this.around.link.state;
    if (this.early !== undefined) this.show(this.early);
    this.bars.setScale(workers.values());
    this.workers.show(
      [...workers.values()].map((row) => {
        const { address, name, results, resultBytes } = row;
        const size = figure(bytes, resultBytes);
        return { key: address, cells: [name, this.bars.show(address, row), results, size] };
      }),
    );
  }

  private show(answer: MemoryAnswer): void {
    const { workers, prefixes, nowS } = this.around.link.state;
    this.early = nowS === 0 ? answer : undefined;
    if (nowS === 0) return;
    const { results, heldBytes, isPart, replicated, amm } = answer;
    this.prefixes.show(
      [...prefixes.values()]
        .filter(({ memory }) => memory > 0)
        .toSorted((a, b) => (heldBytes[b.name] ?? 0) - (heldBytes[a.name] ?? 0))
        .map(({ name: prefix, memory, producedBytes }) => ({
          key: prefix,
          cells: [
            ...[prefix, memory, figure(bytes, heldBytes[prefix] ?? -1)],
            figure(bytes, producedBytes),
          ],
        })),
    );
    const name = (address: string): string => workers.get(address)?.name ?? address;
    this.results.show(
      results.map(({ key, nbytes, workers: holders }) => ({
        key,
        cells: [
          this.link(key),
          figure(bytes, nbytes),
          holders.length,
          holders.map(name).join(', '),
        ],
      })),
    );
    const part = isPart
      ? ' Only a part of all results was searched: bytes now are of that part.'
      : '';
    setText(
      this.note,
      `${countOf(replicated, 'result has', 'results have')} two or more copies.${part}`,
    );
    patch(this.amm, ...describe(amm));
  }

  private link(key: string): HTMLElement {
    let link = this.links.get(key);
    if (link === undefined) this.links.set(key, (link = taskLink(this.around, key)));
    return link;
  }
}

/** Sentences about the Active Memory Manager. */
function describe(amm: MemoryAnswer['amm']): HTMLElement[] {
  if (amm === null) return [h('p', {}, 'It is not there.')];
  const { running, intervalMs, policies, lastRound } = amm;
  const names = policies.map(({ name }) => name).join(', ') || 'none';
  const lines = [
    running ? `It runs every ${seconds(intervalMs / 1000)}.` : 'It does not run.',
    `Policies: ${names}.`,
  ];
  if (lastRound !== undefined) {
    const { suggested, accepted, underWay, refused, failures } = lastRound;
    lines.push(
      `Last round: ${countOf(suggested, 'suggestion')}, ${accepted} accepted, ${refused} refused; ${underWay} under way.`,
    );
    for (const { policy, message } of failures) lines.push(`${policy} failed: ${message}`);
  }
  return lines.map((line) => h('p', {}, line));
}
