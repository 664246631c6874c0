/** `node with-express.js [PORT]`: `POST /digest` with `{ text, rounds }`, on behalf of the header `x-tenant`. */
import process from 'node:process';
import express from 'express';
import { answerTo, leaving, startService } from './service.js';

const [port = '8080'] = process.argv.slice(2);
const service = await startService();
const app = express();
app.post('/digest', express.json(), async (request, response) => {
  const tenant = request.get('x-tenant') || 'nobody';
  response.json({ digest: await service.digest(tenant, request.body, leaving(response)) });
});
app.use((error, _request, response, _next) => {
  const { status, headers, body } = answerTo(error);
  response.status(status).set(headers).json(body);
});
const server = app.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
process.once('SIGTERM', async () => {
  await service.close(); // What comes meanwhile is told 503.
  server.close();
});
