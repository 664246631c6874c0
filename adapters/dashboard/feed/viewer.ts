import type { StreamRequest } from './stream-window.ts';

/** What a viewer sends. */
export type ViewerMessage =
  /** It has shown the frame: it can take another one. */
  | { readonly type: 'ack'; readonly n: number }
  /** It wants to see another moment of what is over. */
  | { readonly type: 'at'; readonly atS: number }
  | ({ readonly type: 'stream'; readonly id: number } & StreamRequest);

/** What the feed needs of a WebSocket. */
export interface ViewerSocket {
  /** @param text - a string, or its bytes in UTF-8 */
  send(text: string | Buffer): void;
  terminate(): void;
}

/**
 * One open page. It gets a frame only after it has acknowledged the one before, so that a slow one gets fewer frames
 * and no queue of them.
 */
export class Viewer {
  /** The frame that it has; 0: none. */
  base = 0;
  private sent = 0;
  private sentMs = 0;

  constructor(private readonly socket: ViewerSocket) {}

  get isReady(): boolean {
    return this.sent === this.base;
  }

  /** How long it has not answered. */
  silentMs(nowMs: number): number {
    return this.isReady ? 0 : nowMs - this.sentMs;
  }

  sendFrame(n: number, text: Buffer, nowMs: number): void {
    this.sent = n;
    this.sentMs = nowMs;
    this.socket.send(text);
  }

  acknowledge(n: number): void {
    if (n === this.sent) this.base = n;
  }

  send(text: string): void {
    this.socket.send(text);
  }

  drop(): void {
    this.socket.terminate();
  }
}

/** Undefined when it is not of the form. */
export function readViewerMessage(text: string): ViewerMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const given = (value ?? {}) as Readonly<Record<string, unknown>>;
  const { type, n, id, atS, fromS, toS, width } = given;
  if (type === 'ack' && isNumber(n)) return { type, n };
  if (type === 'at' && isNumber(atS)) return { type, atS };
  const isWindow = isNumber(fromS) && isNumber(toS) && fromS < toS && isNumber(width);
  if (type === 'stream' && isNumber(id) && isWindow) return { type, id, fromS, toS, width };
  return undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
