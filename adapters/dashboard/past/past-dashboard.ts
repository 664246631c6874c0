import { type ClusterView, YardmasterError } from '../../../core/api/index.ts';
import { Access } from '../access.ts';
import { type ApiSource, addApi } from '../routes/api.ts';
import { addFeed } from '../routes/feed-route.ts';
import { addPages } from '../routes/pages.ts';
import { createServer, startServer, urlOf } from '../server.ts';
import { PastFeed } from './past-feed.ts';
import type { PastSamples } from './past-samples.ts';

/** A scheduler that is gone. */
export interface Past {
  readonly kind: 'recording' | 'journal';
  /** For people: the name of the file. */
  readonly title: string;
  /** Sentences about what cannot be seen, or is not certain. */
  readonly notes: readonly string[];
  readonly samples: PastSamples;
  /** The cluster at its end. */
  readonly cluster: ClusterView;
  /**
   * The scheduler as it was at a moment, until another one is asked for.
   * @param isExplained - with the candidates of decisions, which takes several times as long
   */
  at(atMs: number, isExplained: boolean): Promise<ApiSource>;
}

/** Where it is served. */
export interface PastDashboardOptions {
  readonly host: string;
  /** The next free one when it is taken; 0: any. */
  readonly port: number;
}

/** The pages over a scheduler that is gone. */
export interface PastDashboard {
  /** What a browser opens. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves the pages of the dashboard over a scheduler that is gone, on this machine only. Nothing can be changed.
 * @throws Error when the host cannot be listened at
 */
export async function openPastDashboard(
  past: Past,
  { host, port }: PastDashboardOptions,
): Promise<PastDashboard> {
  const { samples, kind, title, notes, cluster } = past;
  const access = new Access({ host, hosts: [], hasCertificates: false });
  const app = await createServer(access, undefined);
  const { range } = samples;
  const [fromS, toS] = samples.recorder.range() ?? [range.fromS, range.toS];
  const startS = samples.lastBusyMs / 1000;
  const stream = { fromS: fromS - 0.01, toS: toS + 0.01 };
  await addPages(app, cluster, access, { kind, title, notes, ...range, startS, stream });
  addFeed(app, new PastFeed(samples));
  addApi(app, ({ query, url, routeOptions }) => {
    const { at } = query as { at?: string };
    const atS = Number(at ?? startS);
    if (Number.isFinite(atS)) return past.at(atS * 1000, routeOptions.url === '/api/task');
    throw new YardmasterError('ERR_PROTOCOL', `${url} needs at, seconds since 1970`, { at });
  });
  app.get('/api/history', () => samples.series());
  app.get('/health', { config: { need: 'nothing' } }, (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send('ok'),
  );
  const server = await startServer(app, host, port);
  return { url: urlOf('http', host, server.port), close: () => server.close() };
}
