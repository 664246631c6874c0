import type { PastDescription } from '../page-messages.ts';
import { h, on, setText } from './dom.ts';
import { preciseClock, seconds } from './format.ts';

/** Undefined when the scheduler runs. */
export function readPast(): PastDescription | undefined {
  const text = document.querySelector<HTMLMetaElement>('meta[name=past]')?.content ?? '';
  return text === '' ? undefined : (JSON.parse(text) as PastDescription);
}

/** Steps of the slider. */
const STEPS = 1000;

/** Chooses the moment that all pages show. */
export class MomentBar {
  readonly element: HTMLElement;
  private readonly slider = h('input', {
    ...{ type: 'range', id: 'moment', min: 0, max: STEPS, step: 1, value: STEPS },
  });
  private readonly output = h('output', { for: 'moment' });
  private isDue = false;

  constructor(
    private readonly past: PastDescription,
    private readonly onMove: (atS: number) => void,
  ) {
    on(this.slider, { input: () => this.move() });
    this.element = h(
      'div',
      { class: 'moment', role: 'region', 'aria-label': 'Moment' },
      h('strong', {}, `${past.kind} ${past.title}`),
      h('label', { for: 'moment' }, 'Moment'),
      this.slider,
      this.output,
      ...past.notes.map((note) => h('p', { class: 'note' }, note)),
    );
    this.show(past.startS);
  }

  /** The moment that the pages show now. */
  show(atS: number): void {
    const { fromS, toS } = this.past;
    const text = `${preciseClock(1000 * atS)}, ${seconds(atS - fromS)} of ${seconds(toS - fromS)}`;
    setText(this.output, text);
    this.slider.setAttribute('aria-valuetext', text);
    if (document.activeElement === this.slider) return;
    this.slider.value = String(Math.round((STEPS * (atS - fromS)) / Math.max(0.001, toS - fromS)));
  }

  /** At most once a frame. */
  private move(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      const { fromS, toS } = this.past;
      // The sample at the very end may be a little later than what the sum of fractions gives.
      const share = Number(this.slider.value) / STEPS;
      this.onMove(share === 1 ? toS + 1 : fromS + share * (toS - fromS));
    });
  }
}
