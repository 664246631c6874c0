/** Control characters but for tab and line feed, and marks that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u202A-\u202E\u2066-\u2069]/gu;

/**
 * Text for a terminal or a log that may contain names and messages of peers: control characters are shown, not
 * obeyed, and no line after the first begins like a line of its own.
 */
export function printable(text: string): string {
  return text
    .replace(UNPRINTABLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replace(/\n(?=\S)/g, '\n    ');
}

/** As {@link printable}, for text whose lines are its own. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
