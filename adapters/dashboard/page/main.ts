import { isSingle, type PageName, pageAt, PAGES } from '../paths.ts';
import { button, h, on, setText } from './dom.ts';
import { Link } from './link.ts';
import { MomentBar, readPast } from './past.ts';
import { SystemHistory } from './system-history.ts';
import { TaskPanel } from './task-panel.ts';
import { switchTheme } from './colours.ts';
import type { Around, View } from './view.ts';
import { Decisions } from './views/decisions.ts';
import { Graph } from './views/graph.ts';
import { Log } from './views/log.ts';
import { Memory } from './views/memory.ts';
import { Overview } from './views/overview.ts';
import { liveProfile } from './views/profile.ts';
import { Stream } from './views/stream.ts';
import { System } from './views/system.ts';
import { Workers } from './views/workers.ts';

import 'uplot/dist/uPlot.min.css';
import './style.css';

/** In the order of their links. */
const VIEWS: Readonly<Record<PageName, readonly [title: string, make: (around: App) => View]>> = {
  status: ['Overview', (around) => new Overview(around)],
  tasks: ['Task stream', (around) => new Stream(around, around.past?.stream)],
  graph: ['Graph', (around) => new Graph(around)],
  profile: ['Profile', liveProfile],
  system: ['System', (around) => new System(around, around.system)],
  memory: ['Memory', (around) => new Memory(around)],
  decisions: ['Decisions', (around) => new Decisions(around)],
  workers: [
    'Workers',
    (around) =>
      new Workers(around, new URLSearchParams(location.search).get('worker') ?? undefined),
  ],
  log: ['Log', (around) => new Log(around)],
};

class App implements Around {
  readonly past = readPast();
  readonly link = new Link(this.past?.startS);
  readonly system = new SystemHistory();
  private readonly main = h('main', { id: 'main', tabindex: -1 });
  private readonly status = h('span', { class: 'connection', role: 'status' }, 'connecting');
  private readonly message = h('div', { class: 'message', role: 'alert', hidden: true });
  private readonly links = new Map<string, HTMLAnchorElement>();
  private readonly panel = new TaskPanel(this);
  private view: View | undefined;
  /** The reader looks at a moment: nothing that is shown changes. */
  isPaused = false;

  start(): void {
    const skip = h('a', { href: '#main', class: 'skip' }, 'Skip to the content');
    if (!isSingle(location.pathname)) document.body.append(skip, this.header());
    document.body.append(this.message, this.main, this.panel.element);
    addEventListener('popstate', () => this.open());
    const moment = this.momentBar();
    this.link.onState = () => {
      if (this.isPaused) return;
      moment?.show(this.link.state.nowS);
      if (moment === undefined) this.system.add(this.link.state);
      this.view?.update?.();
    };
    this.link.onConnection = (isOpen) => {
      const kind = this.past?.kind ?? 'live';
      setText(this.status, isOpen ? kind : 'no connection, retrying');
      this.status.classList.toggle('broken', !isOpen);
    };
    this.link.connect();
    this.open();
    const task = new URLSearchParams(location.search).get('task');
    if (task !== null) this.showTask(task);
  }

  showTask(key: string): void {
    void this.panel.show(key);
  }

  go(path: string): void {
    history.pushState(null, '', path);
    this.open();
    this.main.focus();
  }

  say(text: string, isError = false): void {
    this.message.hidden = false;
    this.message.classList.toggle('error', isError);
    this.message.replaceChildren(
      h('span', {}, text),
      button('Dismiss', () => (this.message.hidden = true)),
    );
  }

  /** Chooses the moment of a scheduler that is gone. */
  private momentBar(): MomentBar | undefined {
    if (this.past === undefined) return undefined;
    const bar = new MomentBar(this.past, (atS) => this.link.moveTo(atS));
    this.message.before(bar.element);
    return bar;
  }

  private open(): void {
    this.view?.leave?.();
    const wanted = pageAt(location.pathname) ?? 'status';
    const [title, make] = VIEWS[wanted];
    for (const [one, link] of this.links) {
      if (one === wanted) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    document.title = `${title} · Yardmaster`;
    this.view = make(this);
    this.main.replaceChildren(h('h1', { class: 'hidden' }, title), this.view.element);
    this.view.update?.();
  }

  private header(): HTMLElement {
    // Workers that are gone cannot be sampled.
    const pages = PAGES.filter((path) => path !== 'profile' || this.past === undefined);
    const links = pages.map((path) => {
      const [title] = VIEWS[path];
      const link = on(h('a', { href: path }, title), {
        click: (event) => {
          const { ctrlKey, metaKey } = event as MouseEvent;
          if (ctrlKey || metaKey) return;
          event.preventDefault();
          this.go(path);
        },
      });
      this.links.set(path, link);
      return link;
    });
    const pause = button('Pause', () => {
      this.isPaused = !this.isPaused;
      pause.setAttribute('aria-pressed', String(this.isPaused));
      if (!this.isPaused) this.view?.update?.();
    });
    pause.setAttribute('aria-pressed', 'false');
    const theme = button('Theme', () => switchTheme(), {
      'aria-label': 'Theme: light or dark',
    });
    return h(
      'header',
      { class: 'top' },
      h('strong', { class: 'brand' }, 'Yardmaster'),
      h('nav', { 'aria-label': 'Pages' }, ...links),
      this.status,
      this.past === undefined && pause,
      theme,
    );
  }
}

new App().start();
