import type { StacksAnswer, TaskAnswer } from '../page-messages.ts';
import { button, figure, h, on, setText, Table } from './dom.ts';
import { bytes, preciseClock, seconds, stacksText } from './format.ts';
import { get } from './link.ts';
import { taskLink } from './task-link.ts';
import { type Around, complain } from './view.ts';

/** The story of one task, over the page. */
export class TaskPanel {
  readonly element = h('dialog', { 'aria-label': 'Story of a task' });

  constructor(private readonly around: Around) {
    on(this.element, {
      click: (event) => {
        if (event.target === this.element) this.element.close();
      },
      close: () => showInAddress(undefined),
    });
  }

  async show(key: string): Promise<void> {
    try {
      const answer = await get<TaskAnswer>('api/task', { key });
      this.element.replaceChildren(...this.content(answer));
      if (!this.element.open) this.element.showModal();
      showInAddress(key);
    } catch (error) {
      complain(this.around, error);
    }
  }

  private content({ why, task }: TaskAnswer): HTMLElement[] {
    const close = button('Close', () => this.element.close(), { class: 'close' });
    const parts = [
      h('header', {}, h('h2', {}, why.key), h('span', { class: 'state' }, why.state), close),
      h('ul', { class: 'sentences' }, ...why.now.map((sentence) => h('li', {}, sentence))),
    ];
    if (task !== null) parts.push(...this.facts(task));
    if (why.state === 'processing' && this.around.past === undefined)
      parts.push(...this.stack(why.key));
    parts.push(...this.decisions(why));
    const story = new Table(
      'Transitions',
      ['time', 'task', 'from', 'to', 'because of'],
      'Its transitions are older than the newest ones, which scheduler.transitionLogLength counts.',
    );
    story.show(
      why.story.map(({ atMs, key, start, finish, stimulusId }, k) => ({
        key: String(k),
        cells: [preciseClock(atMs), key, start, finish, stimulusId],
      })),
    );
    parts.push(h('h3', {}, 'Story'), story.element);
    return parts;
  }

  private facts(task: NonNullable<TaskAnswer['task']>): HTMLElement[] {
    const { nbytes, type, error, workers, cause, dependencies, dependents } = task;
    const keys = (title: string, all: readonly string[]): HTMLElement =>
      h(
        'p',
        {},
        `${title}: `,
        ...all.flatMap((key, k) => [k === 0 ? '' : ', ', taskLink(this.around, key)]),
      );
    return [
      ...(error === null ? [] : [h('pre', { class: 'error' }, error)]),
      ...(workers.length === 0 ? [] : [h('p', {}, `It failed on ${workers.join(', ')}.`)]),
      ...(cause === null ? [] : [keys('The first cause', [cause])]),
      ...(nbytes >= 0
        ? [h('p', {}, `Result: ${bytes(nbytes)}${type === null ? '' : ` (${type})`}`)]
        : []),
      ...(dependencies.length > 0 ? [keys('Needs', dependencies)] : []),
      ...(dependents.length > 0 ? [keys('Needed by', dependents)] : []),
    ];
  }

  /** The calls of a running task, which its worker is asked for. */
  private stack(key: string): HTMLElement[] {
    const text = h('pre', { tabindex: 0, 'aria-label': 'Call stack' }, 'Its worker is asked.');
    get<StacksAnswer>('api/stacks', { key }).then(
      (answer) => setText(text, stacksText(answer)),
      (error: unknown) => setText(text, (error as Error).message),
    );
    return [h('h3', {}, 'Call stack'), text];
  }

  private decisions({ decisions, isRecording }: TaskAnswer['why']): HTMLElement[] {
    if (decisions.length === 0) {
      const hint = isRecording
        ? 'No decision about it is remembered.'
        : 'Decisions are not being recorded; switch that on under Decisions.';
      return [h('p', { class: 'note' }, hint)];
    }
    return decisions.flatMap(({ kind, policy, outcome, rule, candidates, atMs }) => {
      const table = new Table(
        'Candidates',
        ['worker', 'score', 'bytes to move', 'work ahead', 'tasks there'],
        'There were no candidates.',
      );
      table.show(
        candidates.map(({ worker, score, missingBytes, occupancyS, processingCount }) => ({
          key: worker,
          cells: [
            worker,
            score === undefined ? '–' : Number(score.toPrecision(4)),
            missingBytes === undefined ? '–' : figure(bytes, missingBytes),
            figure(seconds, occupancyS),
            processingCount,
          ],
        })),
      );
      const title = h('h3', {}, `${kind}: ${outcome}`);
      return [title, h('p', {}, `${preciseClock(atMs)} ${policy}: ${rule}`), table.element];
    });
  }
}

/** The address of the page says which task is open, so that it can be shared. */
function showInAddress(key: string | undefined): void {
  const address = new URL(location.href);
  if (key === undefined) address.searchParams.delete('task');
  else address.searchParams.set('task', key);
  history.replaceState(null, '', address);
}
