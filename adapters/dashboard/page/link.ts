/** A row of a table: its key first. */
export type Row = readonly [key: string, ...cells: (string | number)[]];

/** What is known of the cluster. */
export interface State {
  nowS: number;
  totals: Readonly<Record<string, number>>;
  /** Sentences, each with the keys of tasks in it. */
  waiting: readonly (readonly [text: string, ...keys: string[]])[];
  failures: {
    readonly first: readonly Failure[];
    readonly newest: readonly Failure[];
    readonly count: number;
  };
  readonly prefixes: Map<string, Row>;
  readonly workers: Map<string, Row>;
}

export type Failure = readonly [key: string, text: string, atMs: number];

/** A part of the task stream. */
export interface StreamWindow {
  readonly fromS: number;
  readonly toS: number;
  readonly since: number;
  readonly range: readonly [number, number] | null;
  readonly rows: readonly (readonly [worker: string, lane: number, name?: string])[];
  readonly actions: readonly string[];
  readonly spans?: readonly Span[];
  readonly bins?: readonly (readonly [number, number, number, number, 0 | 1])[];
  readonly binMs?: number;
  readonly count: number;
  readonly dropped: number;
}

/** Row, prefix, action, start and stop in milliseconds from the window's start, 1 for an error, key. */
export type Span = readonly [number, number, number, number, number, 0 | 1, string];

interface Change {
  readonly changed: readonly Row[];
  readonly gone: readonly string[];
}

interface Frame extends Omit<State, 'prefixes' | 'workers'> {
  readonly type: 'state';
  readonly n: number;
  readonly isWhole?: boolean;
  readonly prefixes: Change;
  readonly workers: Change;
}

const RETRY_MS = 1000;

/** The event of the window after another moment is shown. */
export const MOMENT = 'yardmaster-moment';

/** Where views read what they show. */
export interface Source {
  readonly state: State;
  /** A part of the task stream; never answered when the connection breaks meanwhile. */
  stream(fromS: number, toS: number, width: number): Promise<StreamWindow>;
}

/** The moment that the pages show of a scheduler that is gone; requests ask about the same one. */
let momentS: number | undefined;

/** The connection to the scheduler. It acknowledges each frame after it was shown. */
export class Link implements Source {
  readonly state: State = {
    ...{ nowS: 0, totals: {}, waiting: [], failures: { first: [], newest: [], count: 0 } },
    ...{ prefixes: new Map<string, Row>(), workers: new Map<string, Row>() },
  };
  onState: () => void = () => undefined;
  onConnection: (isOpen: boolean) => void = () => undefined;
  private socket: WebSocket | undefined;
  private readonly asked = new Map<number, (answer: StreamWindow) => void>();
  private requests = 0;

  /** @param startS - the scheduler is gone: the moment that is shown first */
  constructor(startS?: number) {
    momentS = startS;
  }

  /** Asks for another moment. */
  moveTo(atS: number): void {
    this.send({ type: 'at', atS });
  }

  connect(): void {
    const feed = new URL('feed', location.href);
    feed.protocol = feed.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(feed);
    this.socket = socket;
    socket.addEventListener('open', () => {
      this.onConnection(true);
      if (momentS !== undefined) this.moveTo(momentS);
    });
    socket.addEventListener('message', ({ data }) => this.receive(String(data)));
    socket.addEventListener('close', () => {
      this.onConnection(false);
      this.asked.clear();
      setTimeout(() => this.connect(), RETRY_MS);
    });
  }

  stream(fromS: number, toS: number, width: number): Promise<StreamWindow> {
    const id = ++this.requests;
    this.send({ type: 'stream', id, fromS, toS, width });
    return new Promise((resolve) => this.asked.set(id, resolve));
  }

  private receive(text: string): void {
    const message = JSON.parse(text) as Frame | ({ type: 'stream'; id: number } & StreamWindow);
    if (message.type === 'stream') {
      this.asked.get(message.id)?.(message);
      this.asked.delete(message.id);
      return;
    }
    const { n, isWhole = false, prefixes, workers, ...rest } = message;
    Object.assign(this.state, rest);
    apply(this.state.prefixes, prefixes, isWhole);
    apply(this.state.workers, workers, isWhole);
    if (momentS !== undefined) momentS = this.state.nowS;
    // A page in the background gets no animation frames, and so it is sent no others.
    requestAnimationFrame(() => {
      this.onState();
      if (momentS !== undefined) window.dispatchEvent(new Event(MOMENT));
      this.send({ type: 'ack', n });
    });
  }

  private send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}

function apply(rows: Map<string, Row>, { changed, gone }: Change, isWhole: boolean): void {
  if (isWhole) rows.clear();
  for (const row of changed) rows.set(row[0], row);
  for (const key of gone) rows.delete(key);
}

/** Asks for a document. */
export async function get<T>(
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<T> {
  const at = momentS === undefined ? {} : { at: String(momentS) };
  const text = new URLSearchParams({ ...query, ...at }).toString();
  return read(await fetch(text === '' ? path : `${path}?${text}`));
}

/** Asks for a change. */
export async function post<T>(path: string, body: object): Promise<T> {
  const token = document.querySelector<HTMLMetaElement>('meta[name=change-token]')?.content ?? '';
  const headers = { 'content-type': 'application/json', 'x-yardmaster-change': token };
  return read(await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

async function read<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  let message = text;
  try {
    message = (JSON.parse(text) as { error?: string }).error ?? text;
  } catch {
    // It is plain text.
  }
  throw new Error(message);
}
