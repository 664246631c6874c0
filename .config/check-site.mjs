/** Fails when a link or an image of the built site leads nowhere, headings included. Addresses of the network are not asked. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import console from 'node:console';
import process from 'node:process';
import { URL } from 'node:url';

const site = join(import.meta.dirname, '../dist/site');
const base = process.env.SITE_BASE ?? '/';
const ORIGIN = 'http://site.invalid';

const pages = new Map(
  readdirSync(site, { recursive: true })
    .filter((path) => path.endsWith('.html') && !path.startsWith('files/'))
    .map((path) => [join(site, path), readFileSync(join(site, path), 'utf8')]),
);
const anchors = new Map(
  [...pages].map(([path, html]) => [
    path,
    new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => plain(id))),
  ]),
);

function plain(text) {
  return text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");
}

/** What is wrong with a link of a page; undefined: nothing. */
function fault(page, link) {
  const from = new URL(base + relative(site, page), ORIGIN);
  const to = new URL(plain(link), from);
  if (to.origin !== ORIGIN) return undefined;
  if (!to.pathname.startsWith(base)) return 'is outside of the site';
  const path = decodeURIComponent(to.pathname.slice(base.length));
  const file = join(site, path === '' || path.endsWith('/') ? `${path}index.html` : path);
  if (!existsSync(file)) return 'leads to no file';
  const anchor = decodeURIComponent(to.hash.slice(1));
  if (anchor !== '' && anchors.get(file)?.has(anchor) === false) return 'leads to no heading';
  return undefined;
}

const faults = new Set();
let links = 0;
for (const [page, html] of pages) {
  for (const [, link] of html.matchAll(/<(?:a|img)\s[^>]*?(?:href|src)="([^"]*)"/g)) {
    links += 1;
    const what = fault(page, link);
    if (what !== undefined) faults.add(`${relative(site, page)}: ${link} ${what}`);
  }
}
for (const line of faults) console.log(line);
console.log(`${pages.size} pages, ${links} links, ${faults.size} of them dead`);
process.exitCode = faults.size === 0 && pages.size > 0 ? 0 : 1;
