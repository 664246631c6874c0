// Builds the pages of the dashboard into one script and one style sheet, the script of performance reports, and the
// playground of the documents with its worker.
import { copyFileSync } from 'node:fs';
import { build } from 'esbuild';

const root = `${import.meta.dirname}/../`;
const outdir = `${root}dist/adapters/dashboard/assets`;
const options = {
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  logLevel: 'warning',
};
await build({
  ...options,
  entryPoints: {
    app: `${root}adapters/dashboard/page/main.ts`,
    'performance-report': `${root}adapters/dashboard/page/performance-report.ts`,
    report: `${root}adapters/dashboard/page/report/main.ts`,
  },
  outdir,
});
copyFileSync(`${root}adapters/dashboard/page/index.html`, `${outdir}/index.html`);
await build({
  ...options,
  entryPoints: {
    playground: `${root}adapters/dashboard/page/playground/main.ts`,
    // The compiler writes down the types by which injection finds collaborators; esbuild does not.
    worker: `${root}dist/adapters/playground/worker.js`,
  },
  outdir: `${root}dist/playground`,
});
