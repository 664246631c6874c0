import type { LogAnswer } from '../../page-messages.ts';
import { h, on, section, Table } from '../dom.ts';
import { preciseClock } from '../format.ts';
import { get } from '../link.ts';
import { poll, taskLink } from '../task-link.ts';
import type { Around, View } from '../view.ts';

/** The newest transitions of tasks and lines of the scheduler's log. */
export class Log implements View {
  private readonly filter = h('input', { id: 'log-filter', type: 'search', autocomplete: 'off' });
  private readonly level = h(
    'select',
    { id: 'log-level' },
    ...['info', 'warn', 'error'].map((one) =>
      h('option', { value: one, selected: one === 'info' }, one),
    ),
  );
  private readonly story = new Table(
    'Transitions',
    ['time', 'task', 'from', 'to', 'because of'],
    'No transition fits.',
  );
  private readonly lines = new Table(
    'Log of the scheduler',
    ['time', 'level', 'message'],
    'Nothing was written.',
  );
  readonly leave: () => void;
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    const fields = h(
      'p',
      { class: 'toolbar' },
      h('label', { for: 'log-filter' }, 'Key or stimulus'),
      this.filter,
      around.past === undefined && h('label', { for: 'log-level' }, 'Level'),
      around.past === undefined && this.level,
    );
    this.element = h(
      'div',
      {},
      fields,
      around.past === undefined && section('Log of the scheduler', this.lines.element),
      section('Transitions', this.story.element),
    );
    const refresh = async (): Promise<void> => {
      this.show(
        await get<LogAnswer>('api/log', { filter: this.filter.value, level: this.level.value }),
      );
    };
    for (const field of [this.filter, this.level]) on(field, { input: () => void refresh() });
    this.leave = poll(around, 2000, refresh);
  }

  private show({ lines, story }: LogAnswer): void {
    this.story.show(
      story.map(({ atMs, key, start, finish, stimulusId }) => ({
        key: `${atMs} ${key} ${start} ${finish}`,
        cells: [preciseClock(atMs), taskLink(this.around, key), start, finish, stimulusId],
      })),
    );
    this.lines.show(
      lines.map(({ atMs = 0, level = '', message = '' }) => ({
        key: `${atMs} ${message}`,
        cells: [preciseClock(atMs), level, message],
      })),
    );
  }
}
