import { request } from 'node:http';

import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';

const ignore = (): undefined => undefined;

/** Writes nothing. */
export const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A cluster in this thread with a dashboard at a free port. */
export async function startCluster(
  dashboard: Readonly<Record<string, unknown>> = {},
  options: LocalClusterOptions = {},
): Promise<{ readonly cluster: LocalCluster; readonly at: string }> {
  const cluster = await LocalCluster.start({
    ...{ mode: 'inline', workers: 2, log: SILENT, dashboard: { port: 0, ...dashboard } },
    ...options,
  });
  return { cluster, at: new URL(cluster.dashboardUrl ?? '').origin };
}

/** An answer of a server, asked with any headers, also those that `fetch` sets itself. */
export function ask(
  url: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, method }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.once('error', reject).end();
  });
}
