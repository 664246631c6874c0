import type { PastDescription } from '../page-messages.ts';
import type { Source, StreamSource } from './link.ts';

/** The services of the page for its views. */
export interface Around<Link extends StreamSource = Source> {
  readonly link: Link;
  /** The scheduler that is gone, if the pages show one: nothing can be changed or asked of workers. */
  readonly past?: PastDescription | undefined;
  /** True while the reader wants to see nothing new. */
  readonly isPaused?: boolean;
  /** Opens the story of a task. */
  showTask(key: string): void;
  /** Opens another view. */
  go(path: string): void;
  /** Says something to the reader, also to one who hears the page. */
  say(text: string, isError?: boolean): void;
}

export interface View {
  readonly element: HTMLElement;
  /** Called with each frame. */
  update?(): void;
  /** Called when it is left. */
  leave?(): void;
}

/** True when something may be changed: not in a frame of another page, which could lay something over the buttons. */
export function canChange(around: Around): boolean {
  if (window === window.top) return true;
  around.say('Open the dashboard in a tab of its own to change something.', true);
  return false;
}

/** Asks before a change. */
export function isConfirmed(around: Around, question: string): boolean {
  return canChange(around) && confirm(question);
}

/** Says to the reader what went wrong. */
export function complain(around: Around<StreamSource>, error: unknown): void {
  around.say(error instanceof Error ? error.message : String(error), true);
}
