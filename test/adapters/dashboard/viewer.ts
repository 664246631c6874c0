import { once } from 'node:events';
import WebSocket from 'ws';
import type { StateFrame, StreamAnswer } from '../../../adapters/dashboard/page-messages.ts';

/** What an open page says and hears, without a browser. */
export class TestViewer {
  readonly frames: StateFrame[] = [];
  readonly streams: StreamAnswer[] = [];
  isClosed = false;

  private constructor(
    private readonly socket: WebSocket,
    private readonly acknowledges: boolean,
  ) {
    socket.on('close', () => (this.isClosed = true));
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as StateFrame | StreamAnswer;
      if (message.type === 'stream') this.streams.push(message);
      else {
        this.frames.push(message);
        if (this.acknowledges) this.send({ type: 'ack', n: message.n });
      }
    });
  }

  static async open(at: string, acknowledges = true): Promise<TestViewer> {
    const socket = new WebSocket(`${at.replace('http', 'ws')}/feed`);
    const viewer = new TestViewer(socket, acknowledges);
    await once(socket, 'open');
    return viewer;
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  close(): void {
    this.socket.close();
  }
}
