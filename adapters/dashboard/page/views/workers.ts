import type { Line, StacksAnswer, WorkerAnswer } from '../../page-messages.ts';
import { legend, MemoryBars } from '../bar.ts';
import { MEMORY } from '../colours.ts';
import { button, figure, h, on, patch, section, setText, Table } from '../dom.ts';
import { bytes, clock, seconds, stacksText } from '../format.ts';
import { get, post } from '../link.ts';
import { poll, taskLink, viewLink } from '../task-link.ts';
import { type Around, complain, isConfirmed, type View } from '../view.ts';

/** All workers, or one of them. */
export class Workers implements View {
  private readonly table = new Table(
    'Workers',
    [
      'worker',
      'address',
      'status',
      'running',
      'waiting there',
      'threads',
      'results',
      'CPU',
      'memory',
      'work ahead (estimate)',
      'last heard of',
    ],
    'No worker is connected.',
  );
  private readonly filter = h('input', {
    id: 'worker-filter',
    type: 'search',
    autocomplete: 'off',
  });
  private readonly detail = h('div');
  private readonly links = new Map<string, HTMLElement>();
  private readonly memory = new MemoryBars();
  private stop: () => void = () => undefined;
  readonly element: HTMLElement;

  constructor(
    private readonly around: Around,
    worker: string | undefined,
  ) {
    on(this.filter, { input: () => this.update() });
    const label = h('label', { for: 'worker-filter' }, 'Filter');
    this.element = h(
      'div',
      {},
      section('Workers', h('p', {}, label, this.filter), legend(MEMORY), this.table.element),
      this.detail,
    );
    if (worker !== undefined) this.open(worker);
  }

  leave(): void {
    this.stop();
  }

  update(): void {
    const wanted = this.filter.value.toLowerCase();
    const rows = [...this.around.link.state.workers.values()];
    this.memory.setScale(rows);
    this.table.show(
      rows
        .filter(({ address, name, status }) =>
          `${address} ${name} ${status}`.toLowerCase().includes(wanted),
        )
        .map((row) => {
          const { address, name, status, threads, processing, cpuPercent, silentS } = row;
          let link = this.links.get(address);
          if (link === undefined) {
            link = viewLink(this.around, `workers?worker=${encodeURIComponent(address)}`, name);
            this.links.set(address, link);
          }
          return {
            key: address,
            cells: [
              link,
              address,
              status,
              row.running,
              processing - row.running,
              threads,
              row.results,
              { shown: cpuPercent < 0 ? '–' : `${cpuPercent} %`, value: cpuPercent },
              this.memory.show(address, row),
              figure(seconds, row.occupancyS),
              { shown: silentS < 2 ? 'now' : `${silentS} s ago`, value: silentS },
            ],
          };
        }),
    );
  }

  /** The buttons that ask a worker something, or act on it. */
  private tools(worker: string, output: HTMLElement): HTMLElement {
    const ask = (path: string, format: (answer: unknown) => string) => () => {
      get<unknown>(path, { worker }).then(
        (answer) => {
          output.hidden = false;
          output.textContent = format(answer);
        },
        (error: unknown) => complain(this.around, error),
      );
    };
    const act = (path: string, question: string, done: string) => () => {
      if (!isConfirmed(this.around, question)) return;
      post(path, { worker }).then(
        () => this.around.say(done),
        (error: unknown) => complain(this.around, error),
      );
    };
    return h(
      'div',
      { class: 'toolbar', role: 'toolbar', 'aria-label': 'Worker' },
      button(
        'Call stacks',
        ask('api/stacks', (answer) => stacksText(answer as StacksAnswer)),
      ),
      button(
        'Log',
        ask('api/logs', (answer) => logText(answer, worker)),
      ),
      button(
        'Retire',
        act(
          'api/retire',
          `Take ${worker} out of service? What it holds moves to others first.`,
          'It is being retired.',
        ),
      ),
      button(
        'Restart',
        act(
          'api/restart',
          `Restart ${worker}? Its tasks are computed again elsewhere.`,
          'It is being restarted.',
        ),
      ),
    );
  }

  private open(worker: string): void {
    const facts = h('dl');
    const tasks = new Table('Tasks on this worker', ['task', 'has run for'], 'It has no tasks.');
    const note = h('p', { class: 'note', role: 'status' });
    const output = h('pre', { tabindex: 0, 'aria-label': 'Answer of the worker' });
    output.hidden = true;
    const bar = this.tools(worker, output);
    const title = h('h2', { id: 'h-worker' }, worker);
    this.detail.replaceChildren(
      h(
        'section',
        { 'aria-labelledby': 'h-worker' },
        title,
        this.around.past === undefined && bar,
        facts,
        tasks.element,
        note,
        output,
      ),
    );
    this.stop = poll(this.around, 1000, async () => {
      const details = await get<WorkerAnswer>('api/worker', { worker });
      setText(title, details.name);
      const entries: readonly (readonly [string, string])[] = [
        ['address', details.address],
        ['status', details.status],
        ['tasks of', details.language],
        [
          'resources',
          details.resources.map(([name, amount]) => `${name}=${amount}`).join(' ') || 'none',
        ],
        ['results', `${details.results}, ${bytes(details.nbytes)}`],
      ];
      patch(facts, ...entries.flatMap(([term, text]) => [h('dt', {}, term), h('dd', {}, text)]));
      tasks.show(
        details.processing.map(([key, ranS]) => ({
          key,
          cells: [taskLink(this.around, key), figure(seconds, ranS)],
        })),
      );
      const more = details.processingCount - details.processing.length;
      setText(note, more > 0 ? `and ${more} more` : '');
    });
  }
}

/** The part of an answer of several workers that is about one of them. */
function answerOf(answers: unknown, worker: string): Readonly<Record<string, unknown>> {
  const pairs = answers as readonly (readonly [string, Readonly<Record<string, unknown>>])[];
  return pairs.find(([address]) => address === worker)?.[1] ?? {};
}

/** Lines of a log, oldest first. */
function logText(answer: unknown, worker: string): string {
  const { workers = [] } = answer as { readonly workers?: unknown };
  const { lines = [] } = answerOf(workers, worker) as { lines?: readonly Line[] };
  return lines.length === 0 ? 'It has written nothing.' : lines.map(lineText).join('\n');
}

/** One line of a log. */
function lineText({ atMs = 0, level = '', message = '' }: Line): string {
  return `${clock(atMs / 1000)} ${level} ${message}`;
}
