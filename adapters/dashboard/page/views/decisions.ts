import type { PoliciesAnswer } from '../../page-messages.ts';
import { button, figure, h, on, section, Table } from '../dom.ts';
import { bytes, seconds } from '../format.ts';
import { get, post } from '../link.ts';
import { poll } from '../task-link.ts';
import { type Around, canChange, complain, isConfirmed, type View } from '../view.ts';

/** Which policies decide, and what others would have decided. */
export class Decisions implements View {
  private readonly slots = h('div', { class: 'cards' });
  private readonly shadows = new Table(
    'Shadows',
    ['slot', 'shadow', 'asked', 'differing', 'would start earlier by', 'would not move'],
    'No policy is in the shadow of another one.',
  );
  private shown = '';
  readonly leave: () => void;
  private refresh: () => Promise<void>;
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    const input = h('input', {
      id: 'why-key',
      type: 'text',
      placeholder: 'sum-12',
      autocomplete: 'off',
    });
    const form = on(
      h(
        'form',
        {},
        h('label', { for: 'why-key' }, 'Key of a task'),
        input,
        h('button', { type: 'submit' }, 'Why is it there?'),
      ),
      {
        submit: (event) => {
          event.preventDefault();
          if (input.value !== '') around.showTask(input.value);
        },
      },
    );
    const record = h(
      'p',
      {},
      button('Record the newest 10,000 decisions', () =>
        this.change('api/record', { keep: 10_000 }, 'Decisions are recorded.'),
      ),
      button('Record none', () =>
        this.change('api/record', { keep: 0 }, 'Decisions are not recorded.'),
      ),
    );
    this.element = h(
      'div',
      {},
      section('Policies in charge', this.slots),
      around.past === undefined && section('Shadows', this.shadows.element),
      section('One decision', form, around.past === undefined && record),
    );
    this.refresh = async () => {
      this.show(await get<PoliciesAnswer>('api/policies'));
    };
    this.leave = poll(around, 2000, () => this.refresh());
  }

  private show(answer: PoliciesAnswer): void {
    const { shadows, ...rest } = answer;
    this.shadows.show(
      shadows.map(({ slot, shadow, decisions, differing, gainS, savedBytes }) => ({
        key: slot,
        cells: [
          slot,
          shadow,
          decisions,
          differing,
          figure(seconds, Math.max(0, gainS)),
          figure(bytes, Math.max(0, savedBytes)),
        ],
      })),
    );
    const text = JSON.stringify(rest);
    if (text === this.shown) return;
    this.shown = text;
    this.slots.replaceChildren(
      ...Object.entries(answer.policies).map(([slot, name]) => this.card(slot, name, answer)),
    );
  }

  private card(slot: string, name: string, { known }: PoliciesAnswer): HTMLElement {
    if (this.around.past !== undefined) {
      return h('div', { class: 'card' }, h('h3', {}, slot), h('strong', {}, name));
    }
    const id = `policy-${slot}`;
    const options = [...new Set([name, ...(known[slot] ?? [])])].map((one) =>
      h('option', { value: one, selected: one === name }, one),
    );
    const select = h('select', { id }, ...options);
    const replace = button('Replace', () => {
      const use = select.value;
      if (
        use !== name &&
        isConfirmed(
          this.around,
          `Put ${use} in charge of ${slot}, in the place of ${name}? No task is lost.`,
        )
      ) {
        this.change('api/policy', { slot, use }, `${use} is in charge of ${slot}.`);
      }
    });
    const compare = button('Compare', () => {
      const use = select.value;
      this.change('api/shadow', { slot, use }, `${use} is compared with ${name} from now on.`);
    });
    const restore = button('Restore', () => {
      if (isConfirmed(this.around, `Put the configured policy of ${slot} back in charge?`)) {
        this.change('api/policy', { slot }, `The configured policy is in charge of ${slot}.`);
      }
    });
    return h(
      'div',
      { class: 'card' },
      h('h3', {}, slot),
      h('strong', {}, name),
      h('label', { for: id }, 'Another policy'),
      select,
      replace,
      slot === 'stealing' ? undefined : compare,
      restore,
    );
  }

  private change(path: string, body: object, done: string): void {
    const { around } = this;
    if (!canChange(around)) return;
    post(path, body).then(
      () => {
        around.say(done);
        void this.refresh();
      },
      (error: unknown) => complain(around, error),
    );
  }
}
