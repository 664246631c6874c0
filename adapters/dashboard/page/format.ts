import type { StacksAnswer } from '../page-messages.ts';
import { secondsText, sizeText } from '../../../core/util/units.ts';

/** 1536 → 1.5 KiB; below 0: unknown. */
export function bytes(amount: number): string {
  return amount < 0 ? '–' : sizeText(amount);
}

/** Bytes per second. */
export function perSecond(amount: number): string {
  return `${bytes(amount)}/s`;
}

/** 0.0042 → 4.2 ms; below 0: unknown. */
export function seconds(amount: number): string {
  return amount < 0 ? '–' : secondsText(amount);
}

/** 12.3 → 12 % */
export function percent(amount: number): string {
  return `${Math.round(amount)} %`;
}

/** 12345 → 12,345 */
export function count(amount: number): string {
  return Math.round(amount).toLocaleString('en');
}

/** Time of day of the scheduler's clock. */
export function clock(atS: number): string {
  return new Date(atS * 1000).toLocaleTimeString('en-GB');
}

/** Time of day with milliseconds. */
export function preciseClock(atMs: number): string {
  return `${clock(atMs / 1000)}.${String(Math.floor(atMs % 1000)).padStart(3, '0')}`;
}

/** The place of a function: a path or an URL with the line, or '' where it has none. */
export function place({ url, line }: { readonly url: string; readonly line: number }): string {
  const path = url.startsWith('file:') ? pathOf(url) : url;
  return line > 0 && path !== '' ? `${path}:${line}` : path;
}

function pathOf(url: string): string {
  const { pathname } = new URL(url);
  try {
    return decodeURI(pathname);
  } catch {
    return pathname; // It has a percent sign that encodes nothing.
  }
}

/** The calls of each running task, one a line, innermost first. */
export function stacksText(answers: StacksAnswer): string {
  const stacks = answers.flatMap(([worker, { running = [], error }]) => {
    if (error !== undefined) return [`${worker} did not answer: ${error}`];
    return running.map(({ key, seconds: ranS, frames, unseen }) => {
      const calls = frames.map((frame) => `    ${frame.name || '(anonymous)'} (${place(frame)})`);
      const none = `    ${unseen ?? 'it waits, and computes nothing'}`;
      return [`${key}, for ${seconds(ranS)}`, ...(calls.length > 0 ? calls : [none])].join('\n');
    });
  });
  return stacks.length === 0 ? 'Nothing runs at present.' : stacks.join('\n');
}
