/** Each transport here breaks one sentence of the contract, and the clause of that sentence finds it. */
import { expect, it } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import {
  InMemoryTransport,
  transportConformance,
  type TransportHarness,
} from '../../../adapters/testing/index.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import {
  type Connection,
  type ConnectionHandlers,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { tcpHarness } from './harness.ts';

type Open = (connection: Connection) => ConnectionHandlers;

/** What is wrong with a transport. */
interface Mutation {
  readonly transport?: (inner: Transport) => Partial<Transport>;
  readonly connection?: (inner: Connection, clock: VirtualClock) => Partial<Connection>;
  readonly handlers?: (inner: ConnectionHandlers, connection: Connection) => ConnectionHandlers;
}

/** All of the inner connection, and what the mutation puts in its place. */
function mutatedConnection(inner: Connection, changes: Partial<Connection>): Connection {
  const base: Connection = {
    peerAddress: inner.peerAddress,
    get bufferedBytes() {
      return inner.bufferedBytes;
    },
    send: (...messages) => inner.send(...messages),
    drained: () => inner.drained(),
    close: () => inner.close(),
    abort: (reason) => inner.abort(reason),
  };
  const descriptors = Object.getOwnPropertyDescriptors(changes);
  return Object.defineProperties(base, descriptors);
}

function mutate(inner: Transport, mutation: Mutation, clock = new VirtualClock()): Transport {
  const opened =
    (open: Open): Open =>
    (connection) => {
      const changes = mutation.connection?.(connection, clock) ?? {};
      const mutated = mutatedConnection(connection, changes);
      const handlers = open(mutated);
      return mutation.handlers?.(handlers, mutated) ?? handlers;
    };
  const changes = mutation.transport?.(inner) ?? {};
  return {
    scheme: inner.scheme,
    listen: (address, accept) =>
      (changes.listen ?? inner.listen.bind(inner))(address, opened(accept)),
    connect: async (address, open, options) => {
      let mutated: Connection | undefined;
      const remember: Open = (connection) => {
        mutated = connection;
        return open(connection);
      };
      const connect = changes.connect ?? inner.connect.bind(inner);
      const connection = await connect(address, opened(remember), options);
      return mutated ?? connection;
    },
    ...(changes.scheme === undefined ? {} : { scheme: changes.scheme }),
  };
}

/** Names of the clauses that a transport breaks, of those that are tried. */
async function broken(
  makeHarness: () => TransportHarness | Promise<TransportHarness>,
  isTried: (clause: string) => boolean = () => true,
): Promise<string[]> {
  const clauses: [name: string, body: () => Promise<void>][] = [];
  transportConformance('a mutant', makeHarness, {
    describe: (_name, body) => body(),
    it: (name, body) => clauses.push([name, body]),
  });
  const found: string[] = [];
  for (const [name, body] of clauses.filter(([clause]) => isTried(clause))) {
    await body().catch(() => found.push(name));
  }
  return found;
}

function inMemory(mutation: Mutation): () => TransportHarness {
  return () => {
    const clock = new VirtualClock();
    const small = new InMemoryTransport(clock, { frameBytesMax: 4096 });
    return {
      transport: mutate(new InMemoryTransport(clock), mutation, clock),
      small: { transport: mutate(small, mutation, clock), frameBytesMax: 4096 },
      listenAddress: 'inmemory://node:0',
      vacantAddress: 'inmemory://vacant',
      until: (holds) => clock.runUntil(holds),
    };
  };
}

function overTcp(mutation: Mutation, options: { readonly closeTimeoutMs?: number } = {}) {
  return async (): Promise<TransportHarness> => {
    const harness = await tcpHarness(3000);
    const transport = new TcpTransport(new SystemClock(), { closeTimeoutMs: 200, ...options });
    return { ...harness, transport: mutate(transport, mutation) };
  };
}

const mapped =
  (change: (message: WireMessage) => WireMessage): NonNullable<Mutation['handlers']> =>
  (inner) => ({
    onMessages: (batch) => inner.onMessages(batch.map(change)),
    onClose: (error) => inner.onClose(error),
  });

const hasCode = (error: unknown, code: 'ERR_FRAME' | 'ERR_CONNECT'): boolean =>
  YardmasterError.is(error, code);

const never = new Promise<never>(() => undefined);

const MUTANTS: Readonly<Record<string, readonly [mutation: Mutation, clauses: readonly string[]]>> =
  {
    'is not broken': [{}, []],
    'resolves drained at once': [
      { connection: () => ({ drained: () => Promise.resolve() }) },
      ['buffered bytes are counted, and drained resolves when they have left'],
    ],
    'counts no buffered bytes': [
      { connection: () => ({ bufferedBytes: 0 }) },
      ['buffered bytes are counted, and drained resolves when they have left'],
    ],
    'never resolves drained once it is over': [
      {
        connection: (inner) => {
          let isOver = false;
          return {
            drained: async () => {
              await inner.drained();
              if (isOver) await never;
            },
            abort: (reason) => {
              isOver = true;
              inner.abort(reason);
            },
          };
        },
      },
      ['drained resolves when the connection ends'],
    ],
    'loses a message in a thousand': [
      {
        connection: (inner) => ({
          send: (...messages) => inner.send(...messages.filter(({ number }) => number !== 7777)),
        }),
      },
      ['10 000 small messages arrive in order'],
    ],
    'tells each message by itself': [
      {
        handlers: (inner, connection) => ({
          onMessages: (batch) => {
            for (const message of batch) if (!hasEnded.has(connection)) inner.onMessages([message]);
          },
          onClose: (error) => inner.onClose(error),
        }),
        connection: (inner) => ({
          abort(reason) {
            hasEnded.add(this as Connection);
            inner.abort(reason);
          },
        }),
      },
      ['messages sent in one turn arrive as one batch'],
    ],
    'sends something for nothing': [
      {
        connection: (inner) => ({
          send: (...messages) => inner.send(...messages, ...(messages.length === 0 ? [{}] : [])),
        }),
      },
      ['sending nothing sends nothing'],
    ],
    'lets what may wait be overtaken': [
      {
        connection: (inner, clock) => ({
          sendLater: (...messages) => void clock.setTimer(5, () => inner.send(...messages)),
        }),
      },
      [
        'what may be sent later keeps its place, and comes when nothing else is sent',
        'what may be sent later is sent before a close',
      ],
    ],
    'forgets what may wait when it closes': [
      {
        connection: (inner, clock) => {
          const waiting: WireMessage[] = [];
          const flush = (): void => inner.send(...waiting.splice(0));
          return {
            sendLater: (...messages) => {
              waiting.push(...messages);
              clock.setTimer(5, flush);
            },
            send: (...messages) => {
              if (waiting.length > 0) flush();
              inner.send(...messages);
            },
          };
        },
      },
      ['what may be sent later is sent before a close'],
    ],
    'damages large messages': [
      {
        handlers: mapped((message) => {
          const { bytes } = message;
          if (bytes instanceof Uint8Array && bytes.length >= 2 ** 25) bytes[bytes.length - 1] = 1;
          return message;
        }),
      },
      ['a message of 32 MiB passes intact'],
    ],
    'speaks JSON for numbers': [
      {
        handlers: mapped((message) =>
          'fractions' in message ? { ...message, fractions: [null] } : message,
        ),
      },
      ['all kinds of plain data arrive as they were sent'],
    ],
    'sends null for undefined': [
      {
        connection: (inner) => ({
          send: (...messages) =>
            inner.send(
              ...messages.map((message) =>
                'dropped' in message ? { ...message, dropped: null } : message,
              ),
            ),
        }),
      },
      ['undefined fields are dropped, and a Buffer arrives as Uint8Array'],
    ],
    'uses its memory for the next message again': [
      {
        handlers: (inner) => {
          const shared = new Uint8Array(1000);
          const reuse = mapped((message) => {
            const { bytes } = message;
            if (!(bytes instanceof Uint8Array) || bytes.length !== 1000) return message;
            shared.set(bytes);
            return { ...message, bytes: shared };
          });
          return reuse(inner, undefined as never);
        },
      },
      ['received bytes stay as they are when more arrives'],
    ],
    'drops what cannot travel': [
      {
        connection: (inner) => ({
          send: (...messages) => {
            try {
              inner.send(...messages);
            } catch (error) {
              if (hasCode(error, 'ERR_FRAME')) throw error;
            }
          },
        }),
      },
      [
        'what cannot travel is refused at once, naming where it is, and nothing of that call is sent',
      ],
    ],
    'drops what is too large': [
      {
        connection: (inner) => ({
          send: (...messages) => {
            try {
              inner.send(...messages);
            } catch (error) {
              if (!hasCode(error, 'ERR_FRAME')) throw error;
            }
          },
        }),
      },
      [
        'a message larger than a frame may be is refused with ERR_FRAME, and nothing of that call is sent',
      ],
    ],
    'sends half of a call': [
      {
        connection: (inner) => ({
          send: (...messages) => {
            for (const message of messages) inner.send(message);
          },
        }),
      },
      [
        'what cannot travel is refused at once, naming where it is, and nothing of that call is sent',
        'a message larger than a frame may be is refused with ERR_FRAME, and nothing of that call is sent',
      ],
    ],
    'does not wait until it is closed': [
      {
        connection: (inner) => ({
          close: () => {
            void inner.close();
            return Promise.resolve();
          },
        }),
      },
      ['close sends what is queued, then both sides see a close in good order'],
    ],
    'throws after a close': [
      {
        connection: (inner) => {
          let isClosed = false;
          return {
            close: () => {
              isClosed = true;
              return inner.close();
            },
            send: (...messages) => {
              if (isClosed) throw new Error('it is closed');
              inner.send(...messages);
            },
          };
        },
      },
      ['send after close does nothing'],
    ],
    'tells another reason than that of the abort': [
      { connection: (inner) => ({ abort: ({ message }) => inner.abort(new Error(message)) }) },
      ['abort drops what is queued and reports its reason to its owner'],
    ],
    'delivers after an abort': [
      {
        connection: (inner) => ({
          abort(reason) {
            hasEnded.add(this as Connection);
            inner.abort(reason);
          },
        }),
        handlers: (inner, connection) => ({
          onMessages: (batch) => {
            inner.onMessages(batch);
            if (hasEnded.has(connection)) inner.onMessages(batch);
          },
          onClose: (error) => inner.onClose(error),
        }),
      },
      ['nothing is delivered after an abort from within onMessages'],
    ],
    'swallows what handlers throw': [
      {
        handlers: (inner) => ({
          onMessages: (batch) => {
            try {
              inner.onMessages(batch);
            } catch {
              // This is the mistake.
            }
          },
          onClose: (error) => inner.onClose(error),
        }),
      },
      ['a handler that throws ends its own connection with that error, and no other'],
    ],
    'loses what accept sends': [
      {
        transport: (inner) => ({
          listen: (address, accept) =>
            inner.listen(address, (connection) => {
              let isAccepting = true;
              const mutated = mutatedConnection(connection, {
                send: (...messages) => {
                  if (!isAccepting) connection.send(...messages);
                },
              });
              const handlers = accept(mutated);
              isAccepting = false;
              return handlers;
            }),
        }),
      },
      ['what accept sends at once reaches the end that connects'],
    ],
    'does not name the address': [
      {
        transport: (inner) => ({
          connect: (...given) =>
            inner.connect(...given).catch(() => {
              throw new YardmasterError('ERR_CONNECT', 'that did not work');
            }),
        }),
      },
      ['connecting to an address without a listener fails with ERR_CONNECT that names the address'],
    ],
    'gives an address twice': [
      {
        transport: (inner) => ({
          listen: (address, accept) =>
            inner.listen(address, accept).catch((error: unknown) => {
              if (String(error).includes('another listener'))
                return inner.listen('inmemory://node:0', accept);
              throw error;
            }),
        }),
      },
      ['an address can be listened on once at a time'],
    ],
    'goes on listening after its close': [
      {
        transport: (inner) => ({
          listen: async (address, accept) => {
            const { address: bound } = await inner.listen(address, accept);
            return { address: bound, close: () => Promise.resolve() };
          },
        }),
      },
      [
        'an address can be listened on once at a time',
        'a closed listener accepts no connections, and its open ones stay',
      ],
    ],
    'does not know its peer': [
      { connection: () => ({ peerAddress: 'somewhere' }) },
      ['the end that connects knows the address of its peer'],
    ],
    'has another scheme than its addresses': [
      { transport: () => ({ scheme: 'memory' }) },
      ['the scheme is that of its addresses'],
    ],
  };

const hasEnded = new WeakSet<Connection>();

it.each(Object.entries(MUTANTS))(
  'a transport that %s is found by that clause alone',
  async (_what, [mutation, clauses]) => {
    expect(await broken(inMemory(mutation))).toEqual(clauses);
  },
);

const TCP_MUTANTS: Readonly<
  Record<string, readonly [harness: () => Promise<TransportHarness>, clauses: readonly string[]]>
> = {
  'forgets the time to connect': [
    overTcp({
      transport: (inner) => ({ connect: (address, open) => inner.connect(address, open) }),
    }),
    ['connecting to a peer that never answers fails with ERR_CONNECT within the time'],
  ],
  'waits for a frozen peer': [
    overTcp({}, { closeTimeoutMs: 60_000 }),
    ['a peer that stands still cannot hold a close for ever'],
  ],
  'takes some bytes for all': [
    overTcp({
      connection: (inner) => ({
        drained: async () => {
          const { bufferedBytes } = inner;
          if (bufferedBytes === 0) return;
          while (inner.bufferedBytes >= bufferedBytes)
            await new Promise((resolve) => setImmediate(resolve));
        },
      }),
    }),
    ['drained waits while the peer reads nothing, and resolves when it reads again'],
  ],
  'takes frames of any size': [
    async () => {
      const harness = await overTcp({})();
      const sending: Mutation = {
        connection: (inner) => ({
          send: (...messages) => {
            const large = messages.some(
              ({ bytes }) => ((bytes as Uint8Array | undefined)?.length ?? 0) > 4000,
            );
            if (large) throw new YardmasterError('ERR_FRAME', 'too large');
            inner.send(...messages);
          },
        }),
      };
      const transport = mutate(new TcpTransport(new SystemClock()), sending);
      return { ...harness, small: { transport, frameBytesMax: 4096, isReachable: true } };
    },
    [
      'a frame larger than the receiver takes ends the connection with ERR_FRAME there, and no other',
    ],
  ],
  'calls nonsense a close in good order': [
    overTcp({
      handlers: (inner) => ({
        onMessages: (batch) => inner.onMessages(batch),
        onClose: (error) =>
          inner.onClose(YardmasterError.is(error, 'ERR_FRAME') ? undefined : error),
      }),
    }),
    ['a peer that breaks the protocol is ERR_PROTOCOL or ERR_FRAME, and others live on'],
  ],
};

it.each(Object.entries(TCP_MUTANTS))(
  'over sockets, a transport that %s is found by that clause',
  async (_what, [harness, clauses]) => {
    expect(await broken(harness, (clause) => clauses.includes(clause))).toEqual(clauses);
  },
);
