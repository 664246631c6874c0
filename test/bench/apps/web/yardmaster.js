/** `POST /digest`: eight calls of a tenant at once, two hundred waiting, ten seconds for each, none for who has left. */
/* global AbortController */
import process from 'node:process';
import { URL } from 'node:url';
import Fastify from 'fastify';
import { defineTasks, LocalCluster } from 'yardmaster';
import * as work from './work.js';

const { digest } = defineTasks(new URL('work.js', import.meta.url), work);
const STATUSES = { ERR_QUEUE_FULL: 429, ERR_CLOSED: 503, ERR_TASK_TIMEOUT: 504 };

const cluster = await LocalCluster.start({ mode: 'threads', workers: 1, threads: 2 });
const client = (await cluster.client()).with({ pure: false, deadlineMs: 10_000 });
const app = Fastify();
app.post('/digest', ({ body, headers }, reply) => {
  const leaving = new AbortController();
  reply.raw.once('close', () => leaving.abort());
  const limit = { name: headers['x-tenant'] ?? 'nobody', max: 8, maxQueued: 200 };
  return client.with({ limit, signal: leaving.signal }).call(digest, body);
});
app.setErrorHandler(({ code, message }, _request, reply) =>
  reply.code(STATUSES[code] ?? 500).send({ code, message }),
);
process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`);
process.once('SIGTERM', async () => {
  await Promise.all([cluster.close({ graceMs: 5000 }), app.close()]);
});
