import { printableLines } from '../../core/util/printable.ts';

/**
 * Writes text that may contain names and messages of peers: all that commands print goes through it, or through
 * `printableLines` where they move the cursor themselves. A line that a peer has a part in is made by `printable`.
 * @param stream - default: the standard output
 */
export function say(text: string, stream: NodeJS.WritableStream = process.stdout): void {
  stream.write(printableLines(text));
}
