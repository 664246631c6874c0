import type { FastifyInstance } from 'fastify';

import { type PluginContext, YardmasterError } from '../../core/api/index.ts';
import { isLoopback } from '../../core/util/hosts.ts';
import { Access } from './access.ts';
import { Feed } from './feed.ts';
import { countsOf, Metrics } from './metrics.ts';
import type { DashboardOptions } from './options.ts';
import { ProfileReader } from './profile.ts';
import { addApi, addChanges, addData, addFeed, addPages, Answers } from './routes.ts';
import {
  createServer,
  type Listening,
  type ServerCertificates,
  startServer,
  urlOf,
} from './server.ts';

/** The parts of the dashboard beside the options of its plugin. */
export interface DashboardParts extends DashboardOptions {
  /** With these it is served encrypted, to readers who show a certificate. */
  readonly certificates?: ServerCertificates;
}

/** The pages, figures and metrics of a scheduler over HTTP. */
export class Dashboard {
  private constructor(
    private readonly server: Listening,
    private readonly feed: Feed,
    private readonly metrics: Metrics,
    /** The address that a browser opens. */
    readonly url: string,
  ) {}

  get port(): number {
    return this.server.port;
  }

  /** @throws Error when the host cannot be listened at */
  static async open(context: PluginContext, parts: DashboardParts): Promise<Dashboard> {
    const { certificates, host, port: wanted, token } = parts;
    const access = new Access({ ...parts, hasCertificates: certificates !== undefined });
    const app = await createServer(access, certificates);
    const feed = new Feed(context, parts);
    const metrics = new Metrics(context, () => feed.viewerCount);
    const answers = new Answers();
    let server: Listening;
    try {
      addFigures(app, answers, context, metrics);
      await addPages(app, answers, context.cluster, access);
      addFeed(app, feed);
      addApi(app, answers, () => context);
      addData(app, answers, '/api/profile', () => new ProfileReader(context).answer());
      addData(app, answers, '/api/bandwidths', () => feed.bandwidths.answer());
      addChanges(app, answers, context);
      server = await startServer(app, host, wanted);
    } catch (error) {
      feed.close();
      metrics.close();
      await app.close();
      throw error;
    }
    const { port } = server;
    if (port !== wanted && wanted !== 0) {
      context.log.warn({ wanted, port }, `port ${wanted} is taken; the dashboard is at ${port}`);
    }
    if (!isLoopback(host) && token === undefined && certificates === undefined) {
      context.log.warn(
        { host },
        `the dashboard at ${host} shows figures only; give it a token to see tasks and logs there`,
      );
    }
    const scheme = certificates === undefined ? 'http' : 'https';
    const address = urlOf(scheme, host, port);
    const isEnough = token === undefined && (certificates !== undefined || !isLoopback(host));
    const url = isEnough ? address : `${address}?token=${encodeURIComponent(access.token)}`;
    // Clients may read the log, so that the token is not in it.
    context.log.info({ url: address }, `dashboard: ${address}`);
    return new Dashboard(server, feed, metrics, url);
  }

  async close(): Promise<void> {
    this.feed.close();
    this.metrics.close();
    await this.server.close();
  }
}

/** Adds the figures that programs read. */
function addFigures(
  app: FastifyInstance,
  answers: Answers,
  context: PluginContext,
  metrics: Metrics,
): void {
  app.get('/health', { config: { need: 'nothing' } }, (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send('ok'),
  );
  app.get('/metrics', { config: { need: 'figures' } }, (request, reply) =>
    answers.send(request, reply, metrics.contentType, () => metrics.text()),
  );
  for (const path of ['/json', '/json/identity.json']) {
    addData(app, answers, path, () => identityOf(context), { need: 'figures' });
  }
  addData(app, answers, '/json/counts.json', () => countsOf(context.cluster), { need: 'figures' });
}

/** As Dask's clients know it, when they are served. */
function identityOf(context: PluginContext): unknown {
  try {
    return context.run('dask.identity');
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_PROTOCOL')) throw error;
    return context.run('identity');
  }
}
