import { streamWindow } from '../feed/stream-window.ts';
import { readViewerMessage, Viewer, type ViewerSocket } from '../feed/viewer.ts';
import type { PageFeed } from '../routes/feed-route.ts';
import type { PastSamples } from './past-samples.ts';

/** Sends open pages the moment that they ask for; first the last one with tasks. */
export class PastFeed implements PageFeed {
  private frame = 0;

  constructor(private readonly samples: PastSamples) {}

  open(socket: ViewerSocket): Viewer {
    const viewer = new Viewer(socket);
    this.show(viewer, this.samples.lastBusyMs);
    return viewer;
  }

  receive(viewer: Viewer, text: string): void {
    const message = readViewerMessage(text);
    if (message === undefined) viewer.drop();
    else if (message.type === 'at') this.show(viewer, message.atS * 1000);
    else if (message.type === 'stream') {
      const { id, fromS, toS, width } = message;
      const since = this.samples.range.fromS;
      const window = streamWindow(this.samples.recorder, { fromS, toS, width });
      viewer.send(JSON.stringify({ type: 'stream', id, since, ...window }));
    }
  }

  /** Nothing is kept of a page that was closed. */
  leave(): void {
    return;
  }

  private show(viewer: Viewer, atMs: number): void {
    const sample = this.samples.at(atMs);
    if (sample === undefined) return;
    const { failures } = this.samples;
    const { totals, waiting, failureCount: count, prefixes, workers } = sample;
    const until = ([, , failedMs]: readonly [string, string, number]): boolean =>
      failedMs <= Math.round(sample.atMs);
    const n = ++this.frame;
    const nowS = sample.atMs / 1000;
    const frame = {
      ...{ type: 'state', n, nowS, totals, waiting, isWhole: true },
      failures: {
        ...{ first: failures.first.filter(until), newest: failures.newest.filter(until), count },
      },
      prefixes: { changed: prefixes, gone: [] },
      workers: { changed: workers, gone: [] },
    };
    viewer.sendFrame(n, Buffer.from(JSON.stringify(frame)), 0);
  }
}
