import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { DaskContext } from './context.ts';
import { toPlain } from './plain.ts';
import { schedulerIdentity } from './rpc/identity.ts';

/**
 * What clients of Dask link to as the dashboard: one page that says what the cluster is doing, and the
 * same as JSON under `/json`. It changes nothing.
 */
export class StatusPage {
  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  /**
   * @param port - 0 for any; any is taken as well when this one is taken
   * @throws Error when nothing can be listened on
   */
  static async listen(context: DaskContext, host: string, port: number): Promise<StatusPage> {
    const server = createServer((request, response) => {
      if (request.method !== 'GET') answer(response, 405, 'text/plain', 'only GET is served');
      else if (request.url === '/json') {
        const identity = JSON.stringify(toPlain(schedulerIdentity(context)));
        answer(response, 200, 'application/json', identity);
      } else answer(response, 200, 'text/html', pageOf(context));
    });
    const bound = await bind(server, host, port).catch(() => bind(server, host, 0));
    return new StatusPage(server, bound);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.closeAllConnections();
      this.server.close(() => {
        resolve();
      });
    });
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  response.end(body);
}

function pageOf({ cluster, address }: DaskContext): string {
  const states = new Map<string, number>();
  for (const prefix of cluster.prefixes.values()) {
    for (const [state, count] of Object.entries(prefix.states)) {
      if (count > 0) states.set(state, (states.get(state) ?? 0) + count);
    }
  }
  const workers = [...cluster.workers.values()].map(
    ({ name, address: at, status, threadCount, processing, hasWhat, nbytes, metrics }) => [
      name,
      at,
      status,
      threadCount,
      processing.size,
      hasWhat.size,
      nbytes,
      metrics.memoryBytes,
    ],
  );
  const titles = [
    'name',
    'address',
    'status',
    'threads',
    'processing',
    'results',
    'bytes',
    'memory',
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Yardmaster</title>
<style>body{font:14px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:left}</style></head>
<body><h1>Yardmaster</h1><p>Scheduler at ${escape(address)}</p>
${table(['state', 'tasks'], [...states])}
${table(titles, workers)}
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

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
