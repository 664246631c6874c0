import { type Child, h, on } from './dom.ts';
import { MOMENT, type StreamSource } from './link.ts';
import { type Around, complain } from './view.ts';

/** The key of a task, which opens its story. */
export function taskLink(around: Around<StreamSource>, key: string): HTMLElement {
  const element = h('a', { href: `?task=${encodeURIComponent(key)}`, class: 'key' }, key);
  return on(element, {
    click: (event) => {
      event.preventDefault();
      // It may stand for another task by now: see `patch`.
      around.showTask(element.textContent);
    },
  });
}

/** A sentence in which these keys, in their order, open the stories of their tasks. */
export function linked(
  around: Around<StreamSource>,
  text: string,
  keys: readonly string[],
): Child[] {
  const parts: Child[] = [];
  let rest = text;
  for (const key of keys) {
    const at = rest.indexOf(key);
    if (at < 0) continue;
    parts.push(rest.slice(0, at), taskLink(around, key));
    rest = rest.slice(at + key.length);
  }
  return [...parts, rest];
}

/** A link to another view. */
export function viewLink(around: Around<StreamSource>, path: string, text: string): HTMLElement {
  return on(h('a', { href: path }, text), {
    click: (event) => {
      event.preventDefault();
      around.go(path);
    },
  });
}

/**
 * Calls now and at an interval; of what is over, once for each moment that is shown. Failures are said once.
 * @returns what ends it
 */
export function poll(
  around: Around<StreamSource>,
  intervalMs: number,
  run: () => Promise<void>,
): () => void {
  let isOver = false;
  let timer = 0;
  let failed = '';
  if (around.past !== undefined) return eachMoment(around, run);
  const turn = async (): Promise<void> => {
    try {
      if (around.isPaused !== true) await run();
      failed = '';
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (text !== failed) around.say(text, true);
      failed = text;
    }
    if (!isOver) timer = window.setTimeout(() => void turn(), intervalMs);
  };
  void turn();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** One call at a time; moments that come meanwhile are one. */
function eachMoment(around: Around<StreamSource>, run: () => Promise<void>): () => void {
  let isRunning = false;
  let isDue = false;
  const turn = async (): Promise<void> => {
    isDue = true;
    if (isRunning) return;
    isRunning = true;
    while (isDue) {
      isDue = false;
      try {
        await run();
      } catch (error) {
        complain(around, error);
      }
    }
    isRunning = false;
  };
  const listener = (): void => void turn();
  window.addEventListener(MOMENT, listener);
  listener();
  return () => window.removeEventListener(MOMENT, listener);
}
