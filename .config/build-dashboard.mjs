// Builds the pages of the dashboard into one script and one style sheet, and the script of performance reports.
import { copyFileSync } from 'node:fs';
import { build } from 'esbuild';

const root = `${import.meta.dirname}/../`;
const outdir = `${root}dist/adapters/dashboard/assets`;
await build({
  entryPoints: {
    app: `${root}adapters/dashboard/page/main.ts`,
    'performance-report': `${root}adapters/dashboard/page/performance-report.ts`,
    report: `${root}adapters/dashboard/page/report/main.ts`,
  },
  outdir,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  logLevel: 'warning',
});
copyFileSync(`${root}adapters/dashboard/page/index.html`, `${outdir}/index.html`);
