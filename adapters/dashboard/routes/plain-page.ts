import type { ClusterView } from '../../../core/api/index.ts';
import { tasksByState } from '../metrics/cluster-figures.ts';

/** Figures of the cluster as a page without scripts, keys of tasks and means to change anything. */
export function plainPage(cluster: ClusterView, note: string): string {
  const states = [...tasksByState(cluster)].filter(([, count]) => count > 0);
  const workers = [...cluster.workers.values()].map(
    ({ name, address, status, threadCount, processing, hasWhat, nbytes, metrics }) => [
      ...[name, address, status, threadCount, processing.size, hasWhat.size, nbytes],
      metrics.memoryBytes,
    ],
  );
  const titles = ['name', 'address', 'status', 'threads', 'processing', 'results', 'bytes'];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Yardmaster</title></head>
<body><h1>Yardmaster</h1><p>${escape(note)}</p>
${table(['state', 'tasks'], states)}
${table([...titles, 'memory'], workers)}
</body></html>
`;
}

function table(titles: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const head = titles.map((title) => `<th>${escape(title)}</th>`).join('');
  const body = rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escape(String(cell))}</td>`).join('')}</tr>`)
    .join('\n');
  return `<table><tr>${head}</tr>\n${body}</table>`;
}

/** Text as it can stand in markup and attributes. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
