import type { Around } from './view.ts';

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
