/** The same with p-queue and piscina. */
/* global AbortController, AbortSignal */
import process from 'node:process';
import { URL } from 'node:url';
import Fastify from 'fastify';
import PQueue from 'p-queue';
import { Piscina } from 'piscina';

const filename = new URL('work.js', import.meta.url).href;
const pool = new Piscina({ filename, name: 'digest', minThreads: 2, maxThreads: 2 });
const queues = new Map();
let isClosing = false;

function queueOf(tenant) {
  let queue = queues.get(tenant);
  if (queue === undefined) queues.set(tenant, (queue = new PQueue({ concurrency: 8 })));
  return queue;
}

const app = Fastify();
app.post('/digest', async ({ body, headers }, reply) => {
  if (isClosing) return reply.code(503).send({ message: 'it is closing' });
  const queue = queueOf(headers['x-tenant'] ?? 'nobody');
  if (queue.size >= 200) return reply.code(429).send({ message: 'too many calls wait' });
  const leaving = new AbortController();
  reply.raw.once('close', () => leaving.abort());
  const timeout = AbortSignal.timeout(10_000);
  const signal = AbortSignal.any([leaving.signal, timeout]);
  try {
    return await queue.add(() => pool.run(body, { signal }), { signal });
  } catch (error) {
    if (timeout.aborted) return reply.code(504).send({ message: 'it took ten seconds' });
    throw error;
  }
});
process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`);
process.once('SIGTERM', async () => {
  isClosing = true;
  await Promise.all([...queues.values()].map((queue) => queue.onIdle()));
  await Promise.all([pool.close(), app.close()]);
});
