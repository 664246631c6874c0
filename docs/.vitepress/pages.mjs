/** What the site takes from the guides themselves: its sidebar, and the names of headings that forges give as well. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const docs = join(import.meta.dirname, '..');
const root = join(docs, '..');
/** An item of a list that begins with a link to a guide. */
const LINK = /^- \[([^\]]+)\]\(([\w-]+\.md)\)/gm;

/** The groups of `index.md` with a page for each item of their lists, and the reference of each entry of the package. */
export function sidebar() {
  const [, ...groups] = readFileSync(join(docs, 'index.md'), 'utf8').split(/^## /m);
  const guides = groups
    .map((group) => ({
      text: group.slice(0, group.indexOf('\n')),
      collapsed: false,
      items: [...group.matchAll(LINK)].map(([, text, path]) => ({
        text,
        link: `/${path.replace(/\.md$/, '')}`,
      })),
    }))
    .filter(({ items }) => items.length > 0);
  refuseMissing(guides.flatMap(({ items }) => items.map(({ link }) => link)));
  return [...guides, { text: 'Reference of the API', collapsed: true, items: entries() }];
}

function refuseMissing(links) {
  const pages = readdirSync(docs)
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => `/${name.replace(/\.md$/, '')}`);
  const missing = pages.filter((page) => !links.includes(page));
  if (missing.length > 0) throw new Error(`docs/index.md does not name ${missing.join(', ')}`);
}

function entries() {
  const folder = join(docs, 'api/yardmaster');
  const names = existsSync(folder) ? readdirSync(folder).map((file) => file.slice(0, -3)) : [];
  return [
    { text: 'yardmaster', link: '/api/yardmaster' },
    ...names.sort().map((name) => ({
      text: `yardmaster/${name}`,
      link: `/api/yardmaster/${name}`,
    })),
  ];
}

/** The anchor of a heading, as GitHub and GitLab make it: one spelling works there and here. */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** Files that guides link to and that are no pages, by their path in the repository: they become part of the site. */
export const linkedFiles = new Set();

/** A plugin of markdown-it: links to files that are no pages lead to `files/` below the base of the site. */
export const linkFiles = (base) => (markdown) => {
  const open = markdown.renderer.rules.link_open;
  markdown.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const token = tokens[index];
    const href = token.attrGet('href');
    if (/^[\w./-]+$/.test(href) && !/\.(md|html)$/.test(href)) {
      const file = resolve(dirname(env.path), href);
      if (!existsSync(file) || !statSync(file).isFile())
        throw new Error(`${relative(root, env.path)} links to ${href}, which is no file`);
      linkedFiles.add(relative(root, file));
      token.attrSet('href', `${base}files/${relative(root, file)}`);
      token.attrSet('target', '_blank');
      return self.renderToken(tokens, index, options);
    }
    return open(tokens, index, options, env, self);
  };
};
