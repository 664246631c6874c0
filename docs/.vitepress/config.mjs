/** The site of the documentation: `npm run site` builds it into `dist/site`. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { repairFrame } from './frame.mjs';
import { anchorOf, linkedFiles, linkFiles, sidebar } from './pages.mjs';

const root = join(import.meta.dirname, '../..');
/** The path under which the site is served: `/yardmaster/` for pages of a forge. */
const base = process.env.SITE_BASE ?? '/';

/** What the first page shows besides guides; copied, since only pages bring their own images along. */
const IMAGES = '/files/docs/images';
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path fill='none' stroke='%230a6cb5' stroke-width='2' d='M1 13h14M1 8h4l5-5h5M5 8h10'/></svg>";

const HOME = {
  layout: 'home',
  title: 'Yardmaster',
  titleTemplate: 'a scheduler for graphs of tasks',
  hero: {
    name: 'Yardmaster',
    text: 'A scheduler for graphs of tasks',
    tagline: 'JavaScript on threads, processes and machines. Every decision is a plugin.',
    image: {
      light: `${IMAGES}/status-light.png`,
      dark: `${IMAGES}/status-dark.png`,
      alt: 'The overview of the dashboard',
    },
    actions: [
      { theme: 'brand', text: 'Getting started', link: '/getting-started' },
      { theme: 'alt', text: 'The client', link: '/client' },
      { theme: 'alt', text: 'Write a policy', link: '/policies' },
    ],
  },
  features: [
    {
      title: 'Graphs instead of jobs',
      details:
        'Futures are arguments of other calls. Types follow from functions; equal calls run once.',
      link: '/client',
    },
    {
      title: 'Workers may die',
      details:
        'Losing one costs what it was computing, without Redis. With a journal the scheduler may die, too.',
      link: '/persistence#a-scheduler-that-continues-after-its-end',
    },
    {
      title: 'Memory has a limit',
      details: 'Results beyond it go to disk; finished ones can outlive the cluster.',
      link: '/persistence',
    },
    {
      title: 'Ask it why',
      details:
        'Why a task waits, why it went there. Record a run, replay it, simulate it under another policy.',
      link: '/insight',
    },
    {
      title: 'See it',
      details:
        'A dashboard, a terminal view, metrics for Prometheus, and reports in one HTML file.',
      link: '/dashboard',
    },
    {
      title: 'Dask, unmodified',
      details: 'It takes the place of dask scheduler for real Dask clients and workers.',
      link: '/dask',
    },
  ],
};

export default defineConfig({
  title: 'Yardmaster',
  description: 'A plugin-based scheduler for graphs of tasks, with workers that run JavaScript.',
  lang: 'en',
  head: [['link', { rel: 'icon', href: ICON }]],
  base,
  outDir: join(root, 'dist/site'),
  cacheDir: join(root, 'node_modules/.cache/vitepress'),
  cleanUrls: false,
  lastUpdated: false,
  vite: { plugins: [repairFrame] },
  // Examples have README files and modules of their own; what they print is in their guides.
  srcExclude: ['examples/*/**'],
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: linkFiles(base),
  },
  themeConfig: {
    nav: [
      { text: 'Guides', link: '/getting-started' },
      { text: 'Playground', link: '/playground' },
      { text: 'Reference', link: '/api/' },
      { text: 'Changelog', link: '/changelog' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // A guide says more about a word than the types that contain it.
          searchOptions: { boostDocument: (id) => (id.includes('/api/') ? 0.4 : 1) },
        },
      },
    },
    footer: { message: 'MIT licence' },
    notFound: {
      title: 'There is no such page',
      quote: 'It may have moved: search for a word of it.',
      linkText: 'All guides',
      linkLabel: 'All guides',
    },
  },
  transformPageData(page) {
    if (page.relativePath === 'index.md') Object.assign(page.frontmatter, HOME);
  },
  buildEnd({ outDir }) {
    const shown = ['light', 'dark'].map((theme) => `docs/images/status-${theme}.png`);
    for (const path of [...linkedFiles, ...shown])
      cpSync(join(root, path), join(outDir, 'files', path));
    cpSync(join(root, 'dist/playground'), join(outDir, 'files/playground'), { recursive: true });
  },
});
