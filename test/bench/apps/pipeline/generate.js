/** Documents of a kind: `count` pages of HTML in folder, some of which cannot be read. The same each time. */
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const WORDS =
  'signal freight wagon switch yard train track route driver brake coupling axle load platform depot timetable shunt engine cargo crossing'.split(
    ' ',
  );
const PARAGRAPHS = 30;
const WORDS_OF_PARAGRAPH = 60;
/** One of so many has no text. */
const BROKEN = 101;

export async function generate(folder, count) {
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < count; index++) {
    const path = join(folder, `${String(index).padStart(6, '0')}.html`);
    if (existsSync(path)) continue;
    await writeFile(`${path}.tmp`, index % BROKEN === BROKEN - 1 ? '' : documentOf(index));
    await rename(`${path}.tmp`, path);
  }
}

function documentOf(index) {
  let state = index + 1;
  const next = (count) => (state = (state * 48271) % 2147483647) % count;
  const word = () => `${WORDS[next(WORDS.length)]}${next(4) === 0 ? next(1000) : ''}`;
  const words = () => Array.from({ length: WORDS_OF_PARAGRAPH }, word).join(' ');
  const paragraphs = Array.from({ length: PARAGRAPHS }, (_, at) => {
    return `<h2 class="part" id="p${at}">${word()}</h2>\n<p>${words()} &amp; <b>${word()}</b></p>`;
  });
  return `<html><head><title>Report ${index}</title><style>p { margin: 0 }</style></head>
<body>${paragraphs.join('\n')}</body></html>`;
}
