/** `node with-fastify.js [PORT]`: `POST /digest` with `{ text, rounds }`, on behalf of the header `x-tenant`. */
import process from 'node:process';
import Fastify from 'fastify';
import { answerTo, leaving, startService } from './service.js';

const [port = '8080'] = process.argv.slice(2);
const service = await startService();
const app = Fastify();
app.post('/digest', async ({ body, headers }, reply) => {
  const tenant = headers['x-tenant'] || 'nobody';
  return { digest: await service.digest(tenant, body, leaving(reply.raw)) };
});
app.setErrorHandler(async (error, _request, reply) => {
  const { status, headers, body } = answerTo(error);
  return reply.code(status).headers(headers).send(body);
});
const address = await app.listen({ port: Number(port), host: '127.0.0.1' });
process.stdout.write(`${address}\n`);
process.once('SIGTERM', async () => {
  await service.close(); // What comes meanwhile is told 503.
  await app.close();
});
