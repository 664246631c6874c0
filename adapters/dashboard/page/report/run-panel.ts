import { timeOf, waitOf } from '../../../report/time-spent.ts';
import type { History, Run } from '../../../report/history.ts';
import { button, h, on } from '../dom.ts';
import { bytes, preciseClock, seconds } from '../format.ts';

/** The runs of a task, shown over the page. */
export class RunPanel {
  readonly element = h('dialog', { 'aria-label': 'Runs of a task' });

  constructor(private readonly history: History) {
    on(this.element, {
      click: (event) => {
        if (event.target === this.element) this.element.close();
      },
    });
  }

  show(key: string): void {
    const { element } = this;
    const runs = this.history.runs.filter((run) => run.key === key);
    const close = button('Close', () => element.close(), { class: 'close' });
    element.replaceChildren(
      h('header', {}, h('h2', { class: 'key' }, key), close),
      ...runs.map((run) => this.runList(run)),
      ...(runs.length > 0 ? [] : [h('p', {}, 'It is not among the runs that this report shows.')]),
    );
    if (!element.open) element.showModal();
    close.focus();
  }

  private runList(run: Run): HTMLElement {
    const { worker, readyS, finishedS, timings, movedBytes, nbytes, isError } = run;
    const { name = '', address = '' } = this.history.workers[worker] ?? {};
    const { queuedS, waitedS } = waitOf(run);
    const { runS, transferS, diskS } = timeOf(timings);
    const facts: readonly (readonly [string, string])[] = [
      ['worker', `${name} (${address})`],
      ['could run at', preciseClock(1000 * readyS)],
      ['waited at the scheduler', seconds(queuedS)],
      ['waited on the worker', seconds(waitedS)],
      ['fetched inputs for', `${seconds(transferS)}, ${bytes(movedBytes)} were elsewhere`],
      ['on disk', seconds(diskS)],
      ['ran', seconds(runS)],
      ['ended at', `${preciseClock(1000 * finishedS)}${isError ? ', and failed' : ''}`],
      ['result', bytes(nbytes)],
    ];
    return h('dl', {}, ...facts.flatMap(([term, text]) => [h('dt', {}, term), h('dd', {}, text)]));
  }
}
