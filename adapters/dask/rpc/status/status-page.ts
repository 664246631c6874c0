import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

import type { DaskContext } from '../../context.ts';
import type { TlsCredentials } from '../../connection/open-socket.ts';
import { toPlain } from '../../codec/plain.ts';
import { schedulerIdentity } from '../cluster/identity.ts';
import { countsOf, prometheusText, tasksByState } from './status-counts.ts';

/** Where the page is served. */
interface StatusPageOptions {
  readonly host: string;
  /** 0 for any; any is taken as well when this one is taken. */
  readonly port: number;
  /** With these the page is encrypted, and its readers must show a certificate of the same authority. */
  readonly tls?: TlsCredentials;
}

interface Answer {
  readonly type: string;
  readonly body: string;
}

/** What is served, by path. The paths are those of Dask's scheduler. */
const ROUTES: ReadonlyMap<string, (context: DaskContext) => Answer> = new Map([
  ['/', html],
  ['/status', html],
  ['/health', () => ({ type: 'text/plain', body: 'ok' })],
  ['/metrics', (context) => ({ type: 'text/plain; version=0.0.4', body: prometheusText(context) })],
  ['/json', identity],
  ['/json/identity.json', identity],
  ['/json/counts.json', (context) => json(countsOf(context))],
]);

/**
 * What clients of Dask link to as the dashboard: one page that says what the cluster is doing, the same
 * as JSON, and metrics for Prometheus. It changes nothing. Other paths are answered with 404.
 */
export class StatusPage {
  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  /** @throws Error when nothing can be listened on */
  static async listen(context: DaskContext, options: StatusPageOptions): Promise<StatusPage> {
    const { host, port, tls } = options;
    const server = serverFor(tls, (request, response) => {
      const { method, url = '/' } = request;
      const route = ROUTES.get(pathIn(url));
      if (method !== 'GET' && method !== 'HEAD') {
        answer(response, 405, { type: 'text/plain', body: 'only GET is served' });
      } else if (route === undefined) {
        const body = `there is nothing here; served are ${[...ROUTES.keys()].join(', ')}`;
        answer(response, 404, { type: 'text/plain', body });
      } else answer(response, 200, route(context));
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

function serverFor(tls: TlsCredentials | undefined, listener: RequestListener): Server {
  if (tls === undefined) return createServer(listener);
  return createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, listener);
}

/** Without the query, and without a slash at the end. */
function pathIn(url: string): string {
  const [path = '/'] = url.split(/[?#]/);
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
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

function answer(response: ServerResponse, status: number, { type, body }: Answer): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  response.end(body);
}

function html(context: DaskContext): Answer {
  return { type: 'text/html', body: pageOf(context) };
}

function identity(context: DaskContext): Answer {
  return json(toPlain(schedulerIdentity(context)));
}

function json(value: unknown): Answer {
  return { type: 'application/json', body: JSON.stringify(value) };
}

function pageOf(context: DaskContext): string {
  const { cluster, address } = context;
  const states = [...tasksByState(context)].filter(([, count]) => count > 0);
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
${table(['state', 'tasks'], states)}
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
