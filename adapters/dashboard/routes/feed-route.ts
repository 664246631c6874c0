import type { FastifyInstance } from 'fastify';

import type { Viewer, ViewerSocket } from '../feed/viewer.ts';

/** What open pages are sent. */
export interface PageFeed {
  /** A page was opened. */
  open(socket: ViewerSocket): Viewer;
  /** What a page sent. */
  receive(viewer: Viewer, text: string): void;
  /** A page was closed. */
  leave(viewer: Viewer): void;
}

/** Adds the WebSocket of the pages. */
export function addFeed(app: FastifyInstance, feed: PageFeed): void {
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
