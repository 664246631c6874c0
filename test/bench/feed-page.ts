import { WebSocket } from 'ws';

/** Milliseconds in which a page shows a frame before it acknowledges it. */
const SHOWING_MS = 16;

/** How often the page of the task stream asks for its window, which is so many seconds long. */
const ASKING_MS = 500;
const WINDOW_S = 30;

/** What an open page says, without a browser. It runs in this process: its own CPU is a part of the price. */
export class FeedPage {
  bytes = 0;
  private nowS = 0;
  private readonly socket: WebSocket;
  private readonly timer: NodeJS.Timeout | undefined;

  /** @param showsStream - whether it shows the task stream */
  constructor(at: string, showsStream: boolean) {
    this.socket = new WebSocket(`${at.replace('http', 'ws')}/feed`);
    this.socket.on('message', (data: Buffer) => this.receive(data));
    if (!showsStream) return;
    this.timer = setInterval(() => {
      const { nowS } = this;
      if (nowS === 0) return;
      this.send({ type: 'stream', id: 1, fromS: nowS - WINDOW_S, toS: nowS, width: 1100 });
    }, ASKING_MS);
  }

  close(): void {
    clearInterval(this.timer);
    this.socket.close();
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
