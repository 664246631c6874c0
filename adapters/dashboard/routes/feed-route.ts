import type { FastifyInstance } from 'fastify';

import type { Feed } from '../feed/feed.ts';

/** Adds the WebSocket of the pages. */
export function addFeed(app: FastifyInstance, feed: Feed): void {
  app.get('/feed', { websocket: true }, (socket) => {
    const viewer = feed.open({
      send: (text) => socket.send(text, { binary: false }),
      terminate: () => socket.terminate(),
    });
    socket.on('message', (data: Buffer) => feed.receive(viewer, data.toString()));
    socket.on('close', () => feed.leave(viewer));
    // A broken connection closes right after.
    socket.on('error', () => feed.leave(viewer));
  });
}
