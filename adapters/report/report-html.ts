import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

import { VERSION, YardmasterError } from '../../core/api/index.ts';
import { asset } from '../dashboard/asset.ts';
import type { Finding } from './findings.ts';
import type { Report } from './report.ts';
import { reportData } from './report-data.ts';
import { escapeText } from '../../core/util/values.ts';

export interface ReportTitle {
  readonly title: string;
  /** Milliseconds since 1970. Undefined: the work was simulated. */
  readonly createdAtMs?: number;
  /** Notes for the reader before the figures. */
  readonly notes?: readonly string[];
}

/**
 * A page that needs nothing else: the summary and the findings as text, and the figures as data that its script shows.
 * @throws YardmasterError `ERR_CONFIG` when the scripts of the pages were not built
 */
export async function html(
  { history, analysis, summary, findings }: Report,
  { title, createdAtMs, notes = [] }: ReportTitle,
): Promise<string> {
  const [script, style] = await Promise.all([asset('report.js'), asset('report.css')]);
  if (script === undefined || style === undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'the pages of the dashboard were not built: npm run build',
    );
  }
  const data = gzipSync(JSON.stringify(reportData(history, analysis))).toString('base64');
  const policy = `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; img-src data:; base-uri 'none'; form-action 'none'`;
  const made =
    createdAtMs === undefined
      ? 'a simulation'
      : `${new Date(createdAtMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const omitted =
    history.omittedRuns === 0
      ? []
      : [`${history.omittedRuns} more runs followed, of which nothing was kept.`];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${escapeText(title)} · Yardmaster</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header class="top"><strong class="brand">Yardmaster</strong><span class="note">report of ${made}, version ${escapeText(VERSION)}</span></header>
<main id="main">
<h1>${escapeText(title)}</h1>
${[...notes, ...omitted].map((note) => `<p class="message">${escapeText(note)}</p>`).join('\n')}
<section aria-labelledby="summary"><h2 id="summary">Summary</h2>
${summary.map((sentence) => `<p class="lead">${escapeText(sentence)}</p>`).join('\n')}
</section>
<section aria-labelledby="findings"><h2 id="findings">Why it took so long</h2>
${findingsList(findings)}
</section>
<div id="views"><noscript>The charts and tables need JavaScript.</noscript></div>
</main>
<script type="application/json" id="data">"${data}"</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

function findingsList(findings: readonly Finding[]): string {
  if (findings.length === 0) return '<p>Nothing stands out.</p>';
  const items = findings.map(
    ({ rule, title, cost, text, remedy }) =>
      `<li data-rule="${escapeText(rule)}"><strong>${escapeText(title)}</strong><p class="cost">${escapeText(cost)}</p><p>${escapeText(text)}</p><p class="remedy">${escapeText(remedy)}</p></li>`,
  );
  return `<ol class="findings">\n${items.join('\n')}\n</ol>`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
