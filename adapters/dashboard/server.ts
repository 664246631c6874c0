import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import websocket from '@fastify/websocket';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';

import { YardmasterError } from '../../core/api/index.ts';
import type { Access, Need } from './access.ts';
import { limitConnections } from '../transports/tcp/index.ts';
import type { RenewedFiles } from '../transports/certificate-layer.ts';
import { HANDSHAKE_TIMEOUT_MS } from '../transports/access.ts';
import { PORTS_TRIED } from './options.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The right that a request needs. Default: `read`. */
    need?: Need;
  }
}

/** Certificates of the server, as they are at present; readers show one of the same authority. */
export type ServerCertificates = Pick<
  RenewedFiles<{ readonly ca: string; readonly cert: string; readonly key: string }>,
  'current' | 'renew'
>;

/** Browsers keep a handful each. */
const CONNECTIONS_MAX = 1024;

/**
 * Requests of one address in one second; a page asks for a handful, and then listens. Each takes time of the thread of the
 * scheduler.
 */
const REQUESTS_MAX = 100;

/** Time for a request to arrive as a whole. */
const REQUEST_TIMEOUT_MS = 10_000;

const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self' http://localhost:* http://127.0.0.1:*",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** A server that refuses what {@link Access} refuses, before any route runs. */
export async function createServer(
  access: Access,
  certificates: ServerCertificates | undefined,
): Promise<FastifyInstance> {
  const options = {
    bodyLimit: 65_536,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { ignoreTrailingSlash: true },
  };
  const https = {
    ...certificates?.current,
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  };
  const app: FastifyInstance =
    certificates === undefined ? fastify(options) : fastify({ ...options, https });
  if (app.server instanceof TlsServer) certificates?.renew(app.server);
  const requests = new RequestRate();
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(SECURITY_HEADERS);
    if (!requests.admits(request.ip)) {
      // Another connection costs the reader more than another request.
      void reply.code(429).headers({ 'retry-after': '1', connection: 'close' });
      return reply
        .type('text/plain; charset=utf-8')
        .send(`more than ${REQUESTS_MAX} requests of this address in a second; ask again later`);
    }
    return check(access, request, reply);
  });
  app.setNotFoundHandler((request, reply) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const text = isRead ? 'there is nothing here; / is the dashboard' : 'only GET is served';
    return reply
      .code(isRead ? 404 : 405)
      .type('text/plain; charset=utf-8')
      .send(text);
  });
  app.setErrorHandler((error, _request, reply) => {
    const isOurs = YardmasterError.is(error);
    const { statusCode } = error as { statusCode?: number };
    const message = error instanceof Error ? error.message : String(error);
    return reply
      .code(isOurs ? 400 : (statusCode ?? 500))
      .send({ error: message, code: isOurs ? error.code : undefined });
  });
  await app.register(websocket, { options: { maxPayload: 16_384 } });
  return app;
}

/** Counts the requests of each address in each second. */
class RequestRate {
  private readonly counts = new Map<string, number>();
  private untilMs = 0;

  admits(address: string): boolean {
    const nowMs = performance.now();
    if (nowMs >= this.untilMs) {
      this.counts.clear();
      this.untilMs = nowMs + 1000;
    }
    const count = (this.counts.get(address) ?? 0) + 1;
    this.counts.set(address, count);
    return count <= REQUESTS_MAX;
  }
}

async function check(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const { headers, is404 } = request;
  const query = request.query as { token?: unknown };
  const need = is404 ? 'nothing' : (request.routeOptions.config.need ?? 'read');
  const refusal = access.refusal(need, headers, query);
  if (refusal !== undefined) {
    return reply.code(refusal.status).type('text/plain; charset=utf-8').send(refusal.text);
  }
  const cookie = access.cookieFor(headers, query);
  if (cookie !== undefined) void reply.header('set-cookie', cookie);
  return undefined;
}

export interface Listening {
  readonly port: number;
  /** Ends all connections. */
  close(): Promise<void>;
}

/**
 * Lets a server listen, at the first free port from the wanted one on.
 * @throws Error when the host cannot be listened at
 */
export async function startServer(
  app: FastifyInstance,
  host: string,
  wanted: number,
): Promise<Listening> {
  // A refused upgrade is none of the server's connections any more, and would keep it open.
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await app.ready();
  const port = await listenFrom(app.server, host, wanted);
  return {
    port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await app.close();
      await new Promise<void>((resolve) => {
        app.server.close(() => resolve());
      });
    },
  };
}

/** The address that a browser of this machine opens. */
export function urlOf(scheme: string, host: string, port: number): string {
  return `${scheme}://${shownHost(host)}:${port}/status`;
}

/** As a browser of this machine finds it. */
function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::' || host === '') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * Listens at the first free port from the wanted one on, and at any when none of them is.
 * @throws Error when the host cannot be listened at
 */
async function listenFrom(server: HttpServer, host: string, port: number): Promise<number> {
  const wanted = port === 0 ? [] : Array.from({ length: PORTS_TRIED }, (_, k) => port + k);
  for (const candidate of [...wanted.filter((one) => one <= 65_535), 0]) {
    const found = await tryPort(server, host, candidate);
    if (found === undefined) continue;
    limitConnections(server, `the dashboard at ${host}:${found}`, CONNECTIONS_MAX);
    return found;
  }
  throw new YardmasterError('ERR_CONNECT', `no port of ${host} is free for the dashboard`, {
    host,
  });
}

/** Undefined when it is taken. */
function tryPort(server: HttpServer, host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      server.off('listening', listening);
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    };
    const listening = (): void => {
      server.off('error', failed);
      resolve((server.address() as AddressInfo).port);
    };
    server.once('error', failed).once('listening', listening);
    server.listen({ host, port });
  });
}
