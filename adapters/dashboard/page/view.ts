import type { Source } from './link.ts';
import type { Past } from './past.ts';

/** What views can do. */
export interface Around {
  readonly link: Source;
  /** What the pages show is over: nothing can be changed or asked of workers. */
  readonly past?: Past | undefined;
  /** Opens the story of a task. */
  showTask(key: string): void;
  /** Opens another view. */
  go(path: string): void;
  /** Says something to the reader, also to one who hears the page. */
  say(text: string, isError?: boolean): void;
}

/** One page. */
export interface View {
  readonly element: HTMLElement;
  /** Called with each frame. */
  update?(): void;
  /** Called when it is left. */
  leave?(): void;
}
