import type { Sentence } from '../../../core/shared/waiting.ts';
import type {
  FailureSummary,
  PageMessage,
  PrefixRow,
  StateFrame,
  StreamAnswer,
  TableChange,
  Totals,
  WorkerRow,
} from '../page-messages.ts';

/** The cluster, as far as the page knows it. */
export interface State {
  nowS: number;
  /** Undefined until the first frame. */
  totals: Totals | undefined;
  running: Sentence;
  waiting: readonly Sentence[];
  failures: FailureSummary;
  readonly prefixes: Map<string, PrefixRow>;
  readonly workers: Map<string, WorkerRow>;
}

const RETRY_MS = 1000;

/** The event of the window after another moment is shown. */
export const MOMENT = 'yardmaster-moment';

/** The source of the task stream, with the names of what it shows. */
export interface StreamSource {
  readonly state: {
    readonly nowS: number;
    readonly prefixes: ReadonlyMap<string, Pick<PrefixRow, 'name' | 'number'> & Partial<PrefixRow>>;
    readonly workers: ReadonlyMap<string, Pick<WorkerRow, 'address' | 'name'>>;
  };
  /** A part of the task stream; never answered when the connection breaks meanwhile. */
  stream(fromS: number, toS: number, width: number): Promise<StreamPart>;
}

/** A part of the task stream, and when recording began. */
export type StreamPart = Omit<StreamAnswer, 'type' | 'id'>;

/** The source of everything that views show. */
export interface Source extends StreamSource {
  readonly state: State;
}

/** The moment that the pages show of a scheduler that is gone; requests ask about the same one. */
let momentS: number | undefined;

/** The connection to the scheduler. It acknowledges each frame after it was shown. */
export class Link implements Source {
  readonly state: State = {
    ...{ nowS: 0, totals: undefined, waiting: [] },
    running: { text: '', keys: [] },
    failures: { first: [], newest: [], count: 0 },
    ...{ prefixes: new Map<string, PrefixRow>(), workers: new Map<string, WorkerRow>() },
  };
  onState: () => void = () => undefined;
  onConnection: (isOpen: boolean) => void = () => undefined;
  private socket: WebSocket | undefined;
  private readonly asked = new Map<number, (answer: StreamPart) => void>();
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

  stream(fromS: number, toS: number, width: number): Promise<StreamPart> {
    const id = ++this.requests;
    this.send({ type: 'stream', id, fromS, toS, width });
    return new Promise((resolve) => this.asked.set(id, resolve));
  }

  private receive(text: string): void {
    const message = JSON.parse(text) as StateFrame | StreamAnswer;
    if (message.type === 'stream') {
      // Earlier requests get the same answer: the server answers the newest one only.
      for (const [id, resolve] of this.asked) {
        if (id > message.id) continue;
        resolve(message);
        this.asked.delete(id);
      }
      return;
    }
    const { n, isWhole = false, prefixes, workers, ...rest } = message;
    Object.assign(this.state, rest);
    apply(this.state.prefixes, 'name', prefixes, isWhole);
    apply(this.state.workers, 'address', workers, isWhole);
    if (momentS !== undefined) momentS = this.state.nowS;
    // A page in the background gets no animation frames, and so it is sent no others.
    requestAnimationFrame(() => {
      this.onState();
      if (momentS !== undefined) window.dispatchEvent(new Event(MOMENT));
      this.send({ type: 'ack', n });
    });
  }

  private send(message: PageMessage): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}

function apply<Row extends object>(
  rows: Map<string, Row>,
  key: keyof Row,
  { changed, gone }: TableChange<Row>,
  isWhole: boolean,
): void {
  if (isWhole) rows.clear();
  for (const change of changed) {
    const name = String(change[key]);
    // A row that is not known yet comes whole.
    rows.set(name, { ...rows.get(name), ...change } as Row);
  }
  for (const key of gone) rows.delete(key);
}

/** Asks for a document. */
export async function get<T>(
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<T> {
  const at: Readonly<Record<string, string>> = momentS === undefined ? {} : { at: String(momentS) };
  const text = new URLSearchParams({ ...query, ...at }).toString();
  return read(await fetch(text === '' ? path : `${path}?${text}`));
}

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
