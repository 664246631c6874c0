import { gunzipSync } from 'node:zlib';

/** The words of a document that an index knows: lower case, three letters or more. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[a-z][a-z0-9]{2,24}/g) ?? [];
}

/** The text of a file: unpacked when it is a `.gz`, and without markup when it is a manual page. */
export function textOf(path: string, content: Uint8Array): string {
  const bytes = path.endsWith('.gz') ? unpack(content) : content;
  const text = Buffer.from(bytes).toString('utf8');
  return isManualPage(path) ? stripRoff(text) : text;
}

/** The readable part of a manual page: no requests, comments, fonts and escapes. */
export function stripRoff(source: string): string {
  const lines: string[] = [];
  for (const line of source.split('\n')) {
    // Requests without text: definitions, conditions, layout. A comment begins with \" .
    if (
      /^[.'](?:\\"|ds|de|if|ie|el|nr|so|ta|in|ti|sp|ne|nh|ad|hy|tr|rm)\b|^[.']\\"|^\.\.$/.test(line)
    ) {
      continue;
    }
    lines.push(line.replace(/^[.']\s*[A-Za-z]{1,3}\b/, ''));
  }
  return lines
    .join('\n')
    .replace(/\\".*$/gm, '')
    .replace(/\\f(?:\[[^\]]*\]|\(..|.)/g, '')
    .replace(/\\[*n](?:\[[^\]]*\]|\(..|.)/g, ' ')
    .replace(/\\\((?:..)/g, ' ')
    .replace(/\\s[+-]?\d+/g, '')
    .replace(/\\[&|^/,:]/g, '')
    .replace(/\\-/g, '-')
    .replace(/\\./g, ' ');
}

function isManualPage(path: string): boolean {
  return /\.[1-9][a-z0-9]*(?:\.gz)?$/i.test(path);
}

/** A damaged archive counts as an empty document: the index is about what can be read. */
function unpack(content: Uint8Array): Uint8Array {
  try {
    return gunzipSync(content);
  } catch {
    return new Uint8Array(0);
  }
}
