import type { Around } from './view.ts';

/**
 * Asks before a change. In a frame of another page nothing can be changed: that page could lay something over the button.
 */
export function isConfirmed(around: Around, question: string): boolean {
  if (window === window.top) return confirm(question);
  around.say('Open the dashboard in a tab of its own to change something.', true);
  return false;
}
