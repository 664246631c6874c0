import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';

let folder: string;
beforeAll(() => {
  folder = exampleProject('web-service', ['fastify', 'express']);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe.each(['with-fastify.js', 'with-express.js'])('%s', (program) => {
  let child: ChildProcess;
  let url: string;
  let agent: Agent;
  beforeEach(async () => {
    agent = new Agent({ keepAlive: true, maxSockets: 8 });
    child = spawn(process.execPath, [program, '0'], { cwd: folder, stdio: ['ignore', 'pipe', 2] });
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
    url = `${line}/digest`;
  });
  afterEach(async () => {
    agent.destroy();
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  /** @param onStart - is given the end of the request by its client */
  async function ask(
    tenant: string,
    body: object | string,
    { over = agent, onStart }: { over?: Agent; onStart?: (leave: () => void) => void } = {},
  ): Promise<{ status: number; body: Record<string, unknown>; retryAfter?: string }> {
    const headers = { 'content-type': 'application/json', 'x-tenant': tenant };
    const asked = request(url, { method: 'POST', agent: over, headers });
    asked.end(typeof body === 'string' ? body : JSON.stringify(body), () =>
      onStart?.(() => asked.destroy()),
    );
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const { statusCode: status = 0, headers: answered } = response;
    const retryAfter = answered['retry-after'];
    const given = JSON.parse(await text(response)) as Record<string, unknown>;
    return { status, body: given, ...(retryAfter === undefined ? {} : { retryAfter }) };
  }

  const hashed = (given: string): string => createHash('sha256').update(given).digest('hex');

  test('answers all calls of eight connections', async () => {
    const all = Array.from({ length: 60 }, (_, n) => `text ${n}`);
    const answers = await Promise.all(
      all.map((each, n) => ask(`t${n % 4}`, { text: each, rounds: 1 })),
    );
    expect(answers).toEqual(all.map((each) => ({ status: 200, body: { digest: hashed(each) } })));
  });

  test('says 429 to a tenant with too many calls, and serves another', async () => {
    const over = new Agent({ maxSockets: 50 });
    const slow = Array.from({ length: 50 }, () =>
      ask('busy', { text: '', rounds: 50_000 }, { over }),
    );
    const other = await ask('small', { text: 'a', rounds: 1 });
    const answers = await Promise.all(slow);
    expect(other).toEqual({ status: 200, body: { digest: hashed('a') } });
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(10);
    for (const { status, body, retryAfter } of refused) {
      expect([status, body['code']]).toEqual([429, 'ERR_QUEUE_FULL']);
      // Seconds, by what such calls take here.
      expect(retryAfter).toMatch(/^[1-9]\d?$/);
    }
  });

  test.each([
    ['no JSON', '{ "text": '],
    ['no text', {}],
  ])('says 400 to what has %s, and takes no tenant for one without a name', async (_what, body) => {
    expect(await ask('', body)).toMatchObject({ status: 400 });
    expect(await ask('', { text: 'a', rounds: 1 })).toMatchObject({ status: 200 });
  });

  test('gives up what nobody waits for', async () => {
    const endless = { text: '', rounds: 1e12 };
    const leave = (end: () => void): void => void setTimeout(end, 300);
    const left = Array.from({ length: 2 }, () => ask('busy', endless, { onStart: leave }));
    await Promise.allSettled(left);
    const startMs = performance.now();
    expect(await ask('small', { text: 'a', rounds: 1 })).toMatchObject({ status: 200 });
    expect(performance.now() - startMs).toBeLessThan(4000);
  });

  test('lets open calls end when it is asked to stop, and says 503 to others meanwhile', async () => {
    const open = ask('small', { text: '', rounds: 500_000 });
    await ask('other', { text: 'a', rounds: 1 });
    child.kill('SIGTERM');
    const late = async (): Promise<number> =>
      (await ask('late', { text: 'a', rounds: 1 }, { over: new Agent() })).status;
    await expect.poll(late).toBe(503);
    expect(await open).toMatchObject({ status: 200 });
    agent.destroy();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
