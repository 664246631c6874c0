import { once } from 'node:events';
import { WebSocket } from 'ws';

/** Milliseconds in which a page shows a frame before it acknowledges it. */
const SHOWING_MS = 16;

/** How often the page of the task stream asks for its window, which is so many seconds long. */
const ASKING_MS = 500;
const WINDOW_S = 30;

/** What an open page says, without a browser. */
export class FeedPage {
  bytes = 0;
  /** Settled when it is connected. */
  readonly opened: Promise<unknown>;
  private nowS = 0;
  private readonly socket: WebSocket;

  /** @param showsStream - whether it shows the task stream */
  constructor(at: string, showsStream: boolean) {
    this.socket = new WebSocket(`${at.replace('http', 'ws')}/feed`);
    this.opened = once(this.socket, 'open');
    this.socket.on('message', (data: Buffer) => this.receive(data));
    if (!showsStream) return;
    setInterval(() => {
      const { nowS } = this;
      if (nowS === 0) return;
      this.send({ type: 'stream', id: 1, fromS: nowS - WINDOW_S, toS: nowS, width: 1100 });
    }, ASKING_MS);
  }

  private receive(data: Buffer): void {
    this.bytes += data.length;
    const head = data.subarray(0, 80).toString();
    const n = /"n":(\d+)/.exec(head)?.[1];
    if (n === undefined) return;
    this.nowS = Number(/"nowS":([\d.]+)/.exec(head)?.[1] ?? 0);
    setTimeout(() => this.send({ type: 'ack', n: Number(n) }), SHOWING_MS);
  }

  private send(message: object): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
