/** What runs on workers: fetch, extract, embed, and the crawl that submits them. */
import { all, concurrent, currentTask, defineTasks, workerClient } from 'yardmaster';

/** Requests to one host at the same time, from however many workers. */
const PER_HOST = 4;
const DIMENSIONS = 256;

export const tasks = defineTasks(import.meta.url, {
  /** The day is an argument because the page depends on it: tomorrow, it is fetched anew. */
  fetchPage: concurrent(20, async (url, day) => {
    const response = await fetch(url, { signal: currentTask().signal });
    const { ok, status } = response;
    if (!ok) throw Object.assign(new Error(`${url} answered ${status}`), { status });
    return { url, html: await response.text() };
  }),

  isWorthRetry: (error) => error.status === 429 || error.status >= 500,

  extract({ url, html }) {
    const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, href]) => new URL(href, url).href);
    const title = /<title>(.*?)<\/title>/.exec(html)?.[1] ?? url;
    return { url, title, links, text: html.replace(/<[^>]+>/g, ' ') };
  },

  /** Stands for a model: words, hashed into a vector of length 1. */
  embed({ url, title, text }) {
    const vector = new Float32Array(DIMENSIONS);
    for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
      let hash = 0;
      for (let at = 0; at < word.length; at++) hash = (31 * hash + word.charCodeAt(at)) | 0;
      vector[Math.abs(hash) % DIMENSIONS]++;
    }
    const length = Math.hypot(...vector);
    return { url, title, vector: vector.map((value) => value / length) };
  },

  /** Follows links, one depth after the other. The pages of a depth are fetched, read and embedded side by side. */
  async crawl(start, { day, depthMax, resultStore }) {
    const client = await workerClient();
    const kept = client.with({ persist: true, resultStore });
    const patient = kept.with({
      retries: { times: 3, backoffMs: 50, jitter: 0.5, retryIf: tasks.isWorthRetry },
      timeoutMs: 30_000,
      limit: (url) => ({ name: new URL(url).host, max: PER_HOST }),
    });
    const seen = new Set([start]);
    const embedded = [];
    let frontier = [start];
    for (let depth = 0; depth <= depthMax && frontier.length > 0; depth++) {
      const pages = patient.map(tasks.fetchPage, frontier, all(day));
      const texts = kept.map(tasks.extract, pages);
      embedded.push(...kept.map(tasks.embed, texts));
      // A page that is gone is no reason to give up the others.
      const read = await client.gather(texts, { errors: 'skip' });
      frontier = [...new Set(read.flatMap(({ links }) => links))].filter((url) => !seen.has(url));
      for (const url of frontier) seen.add(url);
    }
    return client.gather(embedded, { errors: 'skip' });
  },
});
