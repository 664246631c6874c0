/**
 * A web site for the example: pages that link to each other, served on this machine. Each third page is busy at first
 * (503), and the site counts what it is asked for and how many requests it has at once.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const TOPICS = ['trains', 'wagons', 'signals', 'switches', 'freight', 'timetables'];

export async function startSite({ pageCount, port }) {
  const figures = { requests: 0, served: 0, mostAtOnce: 0 };
  const wasBusy = new Set();
  let open = 0;
  const server = createServer(async (request, response) => {
    const page = Number(/^\/page\/(\d+)$/.exec(request.url)?.[1] ?? NaN);
    figures.requests++;
    figures.mostAtOnce = Math.max(figures.mostAtOnce, ++open);
    await sleep(10);
    open--;
    if (!(page < pageCount)) return void response.writeHead(404).end();
    if (page % 3 === 0 && !wasBusy.has(page)) {
      wasBusy.add(page);
      return void response.writeHead(503).end();
    }
    figures.served++;
    response.writeHead(200, { 'content-type': 'text/html' }).end(htmlOf(page, pageCount));
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/page/0`,
    get summary() {
      const { requests, served, mostAtOnce } = figures;
      return `${requests} requests, ${served} served, ${mostAtOnce} at once`;
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Two links from each page make a tree, and one back makes it a graph. */
function htmlOf(page, pageCount) {
  const topic = TOPICS[page % TOPICS.length];
  const next = [2 * page + 1, 2 * page + 2].filter((other) => other < pageCount);
  const links = [...next, Math.floor(page / 2)].map((other) => `<a href="/page/${other}">more</a>`);
  const text = `All about ${topic}, part ${page}. `.repeat(20);
  return `<title>${topic} ${page}</title><p>${text}</p>${links.join('\n')}`;
}
