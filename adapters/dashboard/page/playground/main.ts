/** The playground of the documents: the reader writes a policy, and a worker of the page simulates it. */
import { button, h, on, setText } from '../dom.ts';
import { Comparison } from './comparison.ts';
import type { Fault, RunAnswer, RunRequest, Settings } from './messages.ts';

import 'uplot/dist/uPlot.min.css';
import '../style.css';
import './playground.css';

/** Milliseconds after which a run is stopped. */
const LIMIT_MS = 20_000;

const TOO_LONG = `stopped after ${LIMIT_MS / 1000} s. A loop of the policy may have no end; if it has one, choose a smaller workload or fewer workers.`;

const SUGGESTIONS = [
  ...['shuffle:6@200ms,20MB', 'shuffle:12@100ms,5MB', 'tree:8@100ms,10MB', 'chains:20,10@50ms,1MB'],
  ...['mapreduce:16@100ms,8MB', 'overlap:12,10@100ms,20MB', 'crossv:4', 'vectorizer:40'],
];

/** The fields of the form, with what a number may be. */
const FIELDS: readonly (readonly [
  keyof Settings,
  label: string,
  limits: Readonly<Record<string, string | number>>,
])[] = [
  ['workload', 'Workload', { list: 'workloads', value: SUGGESTIONS[0] ?? '', size: 22 }],
  ['workers', 'Workers', { type: 'number', min: 1, max: 256, value: 8 }],
  ['threads', 'Threads of each', { type: 'number', min: 1, max: 64, value: 2 }],
  ['link', 'Link (Mbit/s)', { type: 'number', min: 1, max: 1e6, value: 1000 }],
  ['memory', 'Memory of each (MB)', { type: 'number', min: 0, max: 1e7, value: 0 }],
];

/** A run under way. */
interface Running {
  readonly answer: Promise<RunAnswer>;
  stop(why: string): void;
}

/** Runs in a worker of its own, which ends with it: code without an end cannot hold up the page. */
function start(request: RunRequest): Running {
  const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
  let stop: Running['stop'] = () => undefined;
  const answer = new Promise<RunAnswer>((resolve) => {
    stop = (message) => resolve({ fault: { message } });
    on(worker, {
      message: (event) => resolve((event as MessageEvent<RunAnswer>).data),
      error: () => stop('the worker of the playground could not be loaded; reload the page.'),
    });
    worker.postMessage(request);
  });
  const timer = setTimeout(() => stop(TOO_LONG), LIMIT_MS);
  void answer.then(() => {
    clearTimeout(timer);
    worker.terminate();
  });
  return { answer, stop };
}

/**
 * The line of a syntax error, which browsers say only of scripts: the module becomes the body of a function that nothing
 * calls, in a worker of its own.
 */
function syntaxErrorOf(source: string): Promise<number | undefined> {
  const body = source
    .replaceAll(/^\s*import\b[^;'"]*['"][^'"\n]*['"]/gm, (text) => text.replaceAll(/[^\n]/g, ' '))
    .replaceAll(/\bexport\s+default\b/g, 'void')
    .replaceAll(/\bexport\s+(?=const|let|class|function|async)/g, '');
  const script = `async()=>{${body}\n};postMessage(0)`;
  const worker = new Worker(URL.createObjectURL(new Blob([script])));
  return new Promise<number | undefined>((resolve) => {
    on(worker, {
      message: () => resolve(undefined),
      error: (event) => {
        event.preventDefault();
        resolve((event as ErrorEvent).lineno);
      },
    });
  }).finally(() => worker.terminate());
}

/** The policies that the page explains, by their headings. */
function samples(): readonly (readonly [title: string, source: string])[] {
  return [...document.querySelectorAll('.language-js')].map((block) => {
    const [title = ''] = block.previousElementSibling?.textContent.split('\u200B') ?? [];
    return [title.trim(), `${block.querySelector('code')?.textContent.trimEnd() ?? ''}\n`];
  });
}

class Playground {
  private readonly samples = samples();
  private readonly editor = h('textarea', {
    ...{ id: 'policy', rows: 20, wrap: 'off', spellcheck: 'false', autocapitalize: 'off' },
    ...{ 'aria-describedby': 'policy-help' },
  });
  private readonly sample = h(
    'select',
    { id: 'sample' },
    ...this.samples.map(([title]) => h('option', {}, title)),
  );
  private readonly inputs = FIELDS.map(([name, , limits]) =>
    h('input', { id: name, required: true, step: 'any', ...limits }),
  );
  private readonly runButton = h('button', { type: 'submit', class: 'run' }, 'Run');
  private readonly stopButton = button('Stop', () => this.stop('stopped.'), { disabled: true });
  private readonly status = h('p', { class: 'note', role: 'status' });
  private readonly fault = h('div', { role: 'alert' });
  private readonly place = h('div');
  private running: readonly Running[] = [];
  private comparison: Comparison | undefined;
  private readonly theme = new MutationObserver(() => this.comparison?.redraw());
  private readonly onHash = (): void => this.restore();
  readonly element: HTMLElement;

  constructor() {
    const form = h(
      'form',
      { 'aria-label': 'Simulation' },
      h('datalist', { id: 'workloads' }, ...SUGGESTIONS.map((value) => h('option', { value }))),
      ...FIELDS.map(([name, label], k) => h('label', { for: name }, label, this.inputs[k])),
      h('label', { for: 'sample', class: 'wide' }, 'Begin with', this.sample),
      h('label', { for: 'policy', class: 'wide' }, 'Policy', this.editor),
      h(
        'p',
        { id: 'policy-help', class: 'note wide' },
        'A module in JavaScript; without any code, the defaults run alone. Control and Enter run it. 0 MB: memory has no limit.',
      ),
      this.runButton,
      this.stopButton,
      button('Link to this', () => void this.share()),
      this.status,
    );
    on(form, {
      submit: (event) => {
        event.preventDefault();
        void this.run();
      },
      keydown: (event) => {
        const { key, ctrlKey, metaKey } = event as KeyboardEvent;
        if (key === 'Enter' && (ctrlKey || metaKey)) form.requestSubmit();
      },
    });
    on(this.sample, { change: () => this.begin() });
    this.element = h('div', {}, form, this.fault, this.place);
    this.begin();
    this.theme.observe(document.documentElement, { attributeFilter: ['class'] });
    addEventListener('hashchange', this.onHash);
    this.restore();
  }

  leave(): void {
    removeEventListener('hashchange', this.onHash);
    this.theme.disconnect();
    this.stop('');
    this.comparison?.leave();
  }

  private begin(): void {
    this.editor.value = this.samples[this.sample.selectedIndex]?.[1] ?? '';
  }

  private get settings(): Settings {
    const values = FIELDS.map(([name, , { type }], k) => {
      const text = this.inputs[k]?.value ?? '';
      return [name, type === 'number' ? Number(text) : text.trim()];
    });
    return Object.fromEntries(values) as Settings;
  }

  private async run(): Promise<void> {
    this.stop('');
    const { settings } = this;
    const source = this.editor.value.trim() === '' ? undefined : this.editor.value;
    // The defaults, and the policy if there is one.
    const runs = [undefined, ...(source === undefined ? [] : [source])].map((each) =>
      start({ settings, source: each }),
    );
    this.running = runs;
    this.stopButton.disabled = false;
    setText(this.status, 'Simulating…');
    const began = performance.now();
    const answers = await Promise.all(runs.map(({ answer }) => answer));
    if (this.running !== runs) return;
    this.running = [];
    this.stopButton.disabled = true;
    const fault = answers.flatMap((answer) => ('fault' in answer ? [answer.fault] : [])).at(-1);
    if (fault !== undefined) {
      const line = fault.line ?? (source === undefined ? undefined : await syntaxErrorOf(source));
      setText(this.status, 'No result.');
      this.complain({ ...fault, line });
      return;
    }
    const shown = answers.flatMap((answer) => ('result' in answer ? [answer.result] : []));
    setText(this.status, `Simulated in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
    const failed = shown.at(-1)?.faults;
    if (failed === undefined) this.complain();
    else {
      const times = `${failed.count} of its answers failed, and the built-in policy decided instead: `;
      this.complain({ ...failed.first, message: times + failed.first.message });
    }
    this.comparison?.leave();
    this.comparison = new Comparison(settings.workload, shown);
    this.place.replaceChildren(this.comparison.element);
    this.comparison.show();
  }

  private stop(why: string): void {
    for (const one of this.running) one.stop(why);
  }

  /** Shows what is wrong, with the line; nothing without a fault. */
  private complain(fault?: Fault): void {
    if (fault === undefined) {
      this.fault.replaceChildren();
      return;
    }
    const { message, line } = fault;
    const text = line === undefined ? '' : (this.editor.value.split('\n')[line - 1] ?? '');
    const shown = line === undefined ? message : `Line ${line}: ${message}\n\n${line} | ${text}`;
    this.fault.replaceChildren(h('pre', { class: 'error' }, shown));
  }

  private async share(): Promise<void> {
    const values = this.inputs.map(({ id, value }) => [id, value]);
    const link = new URLSearchParams([...values, ['policy', this.editor.value]]);
    history.replaceState(history.state, '', `#${link.toString()}`);
    const copied = await navigator.clipboard.writeText(location.href).then(
      () => '; it is copied.',
      () => ': copy it.',
    );
    setText(
      this.status,
      `The address of this page now carries the settings and the policy${copied}`,
    );
  }

  /** Takes over what a link carries. Nothing of it runs before the reader says so. */
  private restore(): void {
    const link = new URLSearchParams(location.hash.slice(1));
    const policy = link.get('policy');
    if (policy === null) return;
    for (const input of this.inputs) input.value = link.get(input.id) ?? input.value;
    this.editor.value = policy;
    setText(this.status, 'This came with the link. Nothing has run: read it, then press Run.');
  }
}

/**
 * Shows the playground in an element, apart from the styles of the page.
 * @returns ends it
 */
export function mount(host: HTMLElement): () => void {
  const playground = new Playground();
  const style = h('link', {
    rel: 'stylesheet',
    href: new URL('playground.css', import.meta.url).href,
  });
  host.attachShadow({ mode: 'open' }).append(style, playground.element);
  return () => playground.leave();
}
