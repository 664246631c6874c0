import { describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport, transportConformance } from '../../../adapters/testing/index.ts';
import type {
  Connection,
  ConnectionHandlers,
  Listener,
  Transport,
  WireMessage,
} from '../../../core/api/index.ts';

/** Passes all on; each flaw overrides one thing. */
class Wrapped implements Connection {
  constructor(protected readonly inner: Connection) {}

  get peerAddress(): string {
    return this.inner.peerAddress;
  }
  get bufferedBytes(): number {
    return this.inner.bufferedBytes;
  }
  send(...messages: readonly WireMessage[]): void {
    this.inner.send(...messages);
  }
  drained(): Promise<void> {
    return this.inner.drained();
  }
  close(): Promise<void> {
    return this.inner.close();
  }
  abort(reason: Error): void {
    this.inner.abort(reason);
  }
}

interface Flaw {
  readonly connection?: (inner: Connection) => Connection;
  readonly handlers?: (inner: ConnectionHandlers) => ConnectionHandlers;
}

/** The in-memory transport with a flaw on both ends of each connection. */
class FlawedTransport implements Transport {
  readonly scheme = 'inmemory';

  constructor(
    private readonly inner: Transport,
    private readonly flaw: Flaw,
  ) {}

  listen(
    address: string,
    accept: (connection: Connection) => ConnectionHandlers,
  ): Promise<Listener> {
    return this.inner.listen(address, (connection) => this.spoil(connection, accept));
  }

  async connect(
    address: string,
    open: (connection: Connection) => ConnectionHandlers,
  ): Promise<Connection> {
    const connection = await this.inner.connect(address, (each) => this.spoil(each, open));
    return this.flaw.connection?.(connection) ?? connection;
  }

  private spoil(
    inner: Connection,
    owner: (connection: Connection) => ConnectionHandlers,
  ): ConnectionHandlers {
    const handlers = owner(this.flaw.connection?.(inner) ?? inner);
    return this.flaw.handlers?.(handlers) ?? handlers;
  }
}

/** Names of the clauses that a flawed transport does not pass. */
async function failuresOf(flaw: Flaw): Promise<string[]> {
  const clauses: (readonly [string, () => Promise<void>])[] = [];
  transportConformance(
    'flawed',
    () => {
      const clock = new VirtualClock();
      return {
        transport: new FlawedTransport(new InMemoryTransport(clock), flaw),
        listenAddress: 'inmemory://:0',
        vacantAddress: 'inmemory://vacant',
        until: (predicate) => clock.runUntil(predicate),
      };
    },
    {
      describe: (_name, body) => body(),
      it: (name, body) => clauses.push([name, body]),
    },
  );
  const failed: string[] = [];
  for (const [name, body] of clauses) {
    // The large message adds nothing here and takes long.
    if (name.includes('32 MiB')) continue;
    await body().catch(() => failed.push(name));
  }
  return failed;
}

describe('the conformance suite finds a transport that', () => {
  it('is sound: no clause fails', async () => {
    expect(await failuresOf({})).toEqual([]);
  });

  it('delivers in the wrong order', async () => {
    const failed = await failuresOf({
      handlers: (inner) => ({
        onMessages: (batch) => inner.onMessages([...batch].reverse()),
        onClose: (error) => inner.onClose(error),
      }),
    });
    expect(failed).toContain('10 000 small messages arrive in order');
  });

  it('delivers one by one', async () => {
    const failed = await failuresOf({
      handlers: (inner) => ({
        onMessages: (batch) => batch.forEach((message) => inner.onMessages([message])),
        onClose: (error) => inner.onClose(error),
      }),
    });
    expect(failed).toContain('messages sent in one turn arrive as one batch');
  });

  it('encodes only at the end of the turn', async () => {
    class Lazy extends Wrapped {
      override send(...messages: readonly WireMessage[]): void {
        queueMicrotask(() => {
          try {
            this.inner.send(...messages);
          } catch {
            // The owner is gone and receives nothing.
          }
        });
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Lazy(inner) });
    expect(failed).toContain('messages are copied: changing one after it was sent changes nothing');
  });

  it('throws from send when the peer is gone', async () => {
    class Strict extends Wrapped {
      isOver = false;
      override send(...messages: readonly WireMessage[]): void {
        if (this.isOver) throw new Error('not connected');
        super.send(...messages);
      }
      override close(): Promise<void> {
        this.isOver = true;
        return super.close();
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Strict(inner) });
    expect(failed).toContain('send after close does nothing');
  });

  it('reports its end twice', async () => {
    const failed = await failuresOf({
      handlers: (inner) => ({
        onMessages: (batch) => inner.onMessages(batch),
        onClose: (error) => {
          inner.onClose(error);
          inner.onClose(error);
        },
      }),
    });
    expect(failed.length).toBeGreaterThan(20);
  });

  it('reports its end from within abort', async () => {
    const told: ConnectionHandlers[] = [];
    class Eager extends Wrapped {
      override abort(reason: Error): void {
        for (const handlers of told.splice(0)) handlers.onClose(reason);
        super.abort(reason);
      }
    }
    const failed = await failuresOf({
      connection: (inner) => new Eager(inner),
      handlers: (inner) => {
        told.push(inner);
        return inner;
      },
    });
    expect(failed).toContain('abort drops what is queued and reports its reason to its owner');
  });

  it('hides that its peer was lost', async () => {
    const failed = await failuresOf({
      handlers: (inner) => ({
        onMessages: (batch) => inner.onMessages(batch),
        onClose: () => inner.onClose(),
      }),
    });
    expect(failed).toEqual(
      expect.arrayContaining([
        'abort drops what is queued and reports its reason to its owner',
        'send never throws on account of the peer; its end arrives once, through onClose',
      ]),
    );
  });

  it('drops what is queued when it closes', async () => {
    class Hasty extends Wrapped {
      override close(): Promise<void> {
        this.inner.abort(new Error('closed'));
        return this.inner.close();
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Hasty(inner) });
    expect(failed).toContain(
      'close sends what is queued, then both sides see a close in good order',
    );
  });

  it('sends what is queued when it aborts', async () => {
    class Polite extends Wrapped {
      override abort(): void {
        void this.inner.close();
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Polite(inner) });
    expect(failed).toContain('abort drops what is queued and reports its reason to its owner');
  });

  it('counts nothing as buffered', async () => {
    class Blind extends Wrapped {
      override get bufferedBytes(): number {
        return 0;
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Blind(inner) });
    expect(failed).toEqual([
      'buffered bytes are counted, and drained resolves when they have left',
    ]);
  });

  it('never lets a bulk sender continue', async () => {
    class Stuck extends Wrapped {
      override drained(): Promise<void> {
        return new Promise(() => undefined);
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Stuck(inner) });
    expect(failed).toContain('drained resolves when the connection ends');
  });

  it('changes what it cannot carry instead of refusing it', async () => {
    const soften = (value: unknown): unknown => {
      if (['bigint', 'symbol', 'function'].includes(typeof value)) return String(value);
      if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
      if (Array.isArray(value)) return value.map(soften);
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, soften(each)]));
    };
    class Soft extends Wrapped {
      override send(...messages: readonly WireMessage[]): void {
        this.inner.send(...messages.map((message) => soften(message) as WireMessage));
      }
    }
    const failed = await failuresOf({ connection: (inner) => new Soft(inner) });
    expect(failed).toEqual([
      'what cannot travel is refused at once, naming where it is, and nothing of that call is sent',
    ]);
  });
});

it('a clause that the harness has nothing to prove with is skipped, by what each runner has for it', async () => {
  type Body = (this: unknown, ...given: unknown[]) => Promise<void>;
  const clauses = new Map<string, Body>();
  const runner = {
    describe: (_name: string, body: () => void) => body(),
    it: (name: string, body: Body) => clauses.set(name, body),
  };
  const transport = new InMemoryTransport(new VirtualClock());
  const harness = {
    transport,
    listenAddress: 'inmemory://x:0',
    vacantAddress: 'inmemory://nobody:1',
  };
  transportConformance('bare', () => harness, runner);
  const skipped: string[] = [];
  const context = { skip: (why: string) => void skipped.push(why) };
  const clause = clauses.get(
    'a connection that is cut is ERR_CLOSED on both sides, and others live on',
  )!;
  await clause.call(undefined, context); // vitest and node:test
  await clause.call(context); // mocha
  expect(clause).toHaveLength(0);
  expect(skipped).toEqual(['the harness has no "proxy"', 'the harness has no "proxy"']);
});
