/** What a web server needs of a cluster: calls on behalf of tenants, a status for each error, and a close. */
import { LocalCluster } from 'yardmaster';
import { digest } from './tasks.js';

const fairness = { use: 'weighted-fair-share', options: { by: 'tenant', weights: { acme: 3 } } };
/** The longest that a call may take, and so the longest that a close may wait for those that are open. */
const CALL_MS = 10_000;
const STATUSES = {
  ERR_QUEUE_FULL: 429,
  ERR_CLOSED: 503,
  ERR_TASK_TIMEOUT: 504,
};

export async function startService() {
  const cluster = await LocalCluster.start({
    // More threads than one tenant may use: two calls that never end leave some for the others.
    ...{ mode: 'threads', workers: 1, threads: 4 },
    config: { scheduler: { policies: { fairness } } },
  });
  const client = await cluster.client();
  const web = client.with({ pure: false, deadlineMs: CALL_MS, maxOpen: 200 });
  return {
    /** @param signal - gives the call up: whoever asked has left */
    digest(tenant, { text, rounds = 1000 } = {}, signal) {
      if (typeof text !== 'string') throw Object.assign(new Error('no text'), { statusCode: 400 });
      const limit = { name: `calls of ${tenant}`, max: 2, rate: '100/s', burst: 20, maxQueued: 20 };
      return web.with({ tenant, limit, signal }).call(digest, text, rounds);
    },
    /** Takes nothing new, and lets open calls end. */
    close: () => cluster.close({ graceMs: CALL_MS }),
  };
}

/** The answer to an error, which may be one of the framework with a status of its own. */
export function answerTo({ code, message, data = {}, statusCode = 500 }) {
  const status = STATUSES[code] ?? statusCode;
  const { retryAfterMs = 1000 } = data;
  const seconds = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  const headers = status === 429 || status === 503 ? { 'retry-after': seconds } : {};
  return { status, headers, body: { code, message } };
}

/** @returns a signal that is aborted when the connection of this answer closes before its end */
export function leaving(response) {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('the client has left'));
  });
  return controller.signal;
}
