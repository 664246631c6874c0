import { once } from 'node:events';
import WebSocket from 'ws';

interface Change {
  readonly changed: readonly (readonly [string, ...(string | number)[]])[];
  readonly gone: readonly string[];
}

/** A frame of the feed. */
export interface Frame {
  readonly type: 'state';
  readonly n: number;
  readonly nowS: number;
  readonly isWhole?: true;
  readonly totals: Readonly<Record<string, number>>;
  readonly prefixes: Change;
  readonly workers: Change;
  readonly waiting: readonly (readonly [text: string, ...keys: string[]])[];
  readonly failures: { readonly first: readonly (readonly [string, string, number])[] };
}

/** A part of the task stream. */
export interface StreamAnswer {
  readonly type: 'stream';
  readonly range: readonly [number, number] | null;
  readonly rows: readonly (readonly [string, number, string?])[];
  readonly spans?: readonly (readonly [number, number, number, number, number, number, string])[];
  readonly bins?: readonly (readonly [number, number, number, number, number])[];
  readonly count: number;
}

/** What an open page says and hears, without a browser. */
export class TestViewer {
  readonly frames: Frame[] = [];
  readonly streams: StreamAnswer[] = [];
  isClosed = false;

  private constructor(
    private readonly socket: WebSocket,
    private readonly acknowledges: boolean,
  ) {
    socket.on('close', () => (this.isClosed = true));
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Frame | StreamAnswer;
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
