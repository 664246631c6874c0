import {
  type Channel,
  type ChannelHandlers,
  type Clock,
  type ErrorPayload,
  type PutDataRequest,
  RemoteError,
  type Role,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { KeptChannels, openChannel } from '../../core/shared/channels.ts';
import { fetchData } from '../../core/shared/fetch-data.ts';
import { inBackground } from '../../core/shared/timers.ts';
import {
  type ActorDescription,
  actorLost,
  type ActorRequest,
  type RunContext,
  type ScatteredValue,
} from '../tasks/index.ts';

/** A serialised result. */
export type Serialised = Uint8Array | ScatteredValue;

type Allocate = (key: string, nbytes: number) => Serialised;
type Fetched = ReadonlyMap<string, Serialised>;

/** A worker that does not answer within this counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** The connections of a client to workers. */
export class Peers extends KeptChannels {
  constructor(network: Network) {
    super('the client', (address, handlers) => openChannelTo(address, 'peer', network, handlers));
  }

  /**
   * The serialised results that the worker has of these.
   * @param allocate - as for {@link fetchData}
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CLOSED`
   */
  async getData(address: string, keys: readonly string[], allocate: Allocate): Promise<Fetched> {
    const channel = await this.to(address);
    const options = { timeoutMs: ANSWER_TIMEOUT_MS, allocate };
    return (await fetchData(channel, keys, options)).values;
  }

  /** Gives serialised values to a worker. Errors as for {@link getData}. */
  async putData(
    address: string,
    values: ReadonlyMap<string, Uint8Array>,
    reservation = 0,
  ): Promise<void> {
    const channel = await this.to(address);
    const request = { keys: [...values.keys()], values: [...values.values()], reservation };
    await channel.request('put-data', request satisfies PutDataRequest, ANSWER_TIMEOUT_MS);
  }
}

/** The answer of a worker to `actor-call`. */
interface ActorReply {
  readonly value?: Uint8Array;
  readonly error?: ErrorPayload;
}

/** A task that waits for an actor for longer than this lets another one run. */
export const ACTOR_PATIENCE_MS = 50;

/** Calls of actors, wherever they live. What goes to one worker leaves in the order of the calls. */
export class ActorCalls {
  /** The latest call that was to be sent to each worker. */
  private readonly lines = new Map<string, Promise<unknown>>();
  /** Workers that could not be reached directly. */
  private readonly unreachable = new Set<string>();

  /**
   * @param relay - calls through the scheduler, for processes that cannot reach workers. Default:
   *   fails
   */
  constructor(
    private readonly peers: Peers,
    private readonly relay?: (worker: string, parameters: WireMessage) => Promise<ActorReply>,
  ) {}

  /**
   * The serialised answer.
   * @throws RemoteError what the method threw
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME` when the arguments cannot be sent
   * @throws YardmasterError `ERR_ACTOR_LOST` when the worker cannot be reached (any more)
   */
  async send(
    { key, worker }: ActorDescription,
    { member, args, actors }: ActorRequest,
  ): Promise<Uint8Array> {
    const parameters = {
      key,
      member,
      args,
      actors,
    };
    try {
      const { answer } = await this.inTurn(worker, parameters);
      const { value, error } = await answer;
      if (error !== undefined) throw new RemoteError(error);
      if (value instanceof Uint8Array) return value;
      throw new YardmasterError('ERR_PROTOCOL', `${worker} answered a call without a value`);
    } catch (error) {
      if (error instanceof RemoteError || isUnsendable(error)) throw error;
      throw actorLost(key, error);
    }
  }

  private inTurn(
    worker: string,
    parameters: WireMessage,
  ): Promise<{ readonly answer: Promise<ActorReply> }> {
    const before = this.lines.get(worker) ?? Promise.resolve();
    const sent = before.then(() => this.begin(worker, parameters));
    const line = sent.then(
      () => undefined,
      () => undefined,
    );
    this.lines.set(worker, line);
    const tidied = line.then(() => {
      if (this.lines.get(worker) === line) this.lines.delete(worker);
    });
    inBackground(tidied, 'the queue of calls to an actor could not be tidied');
    return sent;
  }

  /** Resolves when the call has left; the answer comes later. */
  private async begin(
    worker: string,
    parameters: WireMessage,
  ): Promise<{ readonly answer: Promise<ActorReply> }> {
    const { relay, unreachable, peers } = this;
    if (relay === undefined || !unreachable.has(worker)) {
      try {
        const channel = await peers.to(worker);
        return { answer: channel.request<ActorReply>('actor-call', parameters) };
      } catch (error) {
        const isOutOfReach =
          YardmasterError.is(error, 'ERR_CONNECT') || YardmasterError.is(error, 'ERR_ACCESS');
        if (relay === undefined || !isOutOfReach) throw error;
        unreachable.add(worker);
      }
    }
    return { answer: lostIfRefused(relay(worker, parameters)) };
  }
}

/** The call never left: its arguments cannot be sent. */
function isUnsendable(error: unknown): boolean {
  return (
    YardmasterError.is(error, 'ERR_NOT_SERIALISABLE') || YardmasterError.is(error, 'ERR_FRAME')
  );
}

/** Tells a refusal of the scheduler from an error that the method throws. */
async function lostIfRefused(answer: Promise<ActorReply>): Promise<ActorReply> {
  try {
    return await answer;
  } catch (error) {
    throw new Error(`the scheduler could not pass it on: ${String(error)}`, { cause: error });
  }
}

/** The steps around every wait of a task for the cluster. */
export interface Pause {
  begin(): void;
  /** Resolves when the task may continue. */
  end(): Promise<void>;
}

/** One for each run: waits of its client and of its handles count together. */
const pauses = new WeakMap<RunContext, Pause>();

/** Parks the run when the first wait begins, rejoins when the last one has ended. */
export function pauseOf(run: RunContext): Pause {
  let pause = pauses.get(run);
  if (pause === undefined) pauses.set(run, (pause = new PlacePause(run)));
  return pause;
}

/** Waits, and gives the place away meanwhile. */
export async function pausing<T>(pause: Pause | undefined, wait: Promise<T>): Promise<T> {
  if (pause === undefined) return wait;
  pause.begin();
  try {
    return await wait;
  } finally {
    await pause.end();
  }
}

/** The same for what is rarely long: the place is kept for a moment. */
export async function pausingLater<T>(
  pause: Pause | undefined,
  wait: Promise<T>,
  { clock, afterMs }: { readonly clock: Clock; readonly afterMs: number },
): Promise<T> {
  if (pause === undefined) return wait;
  const isDone = await new Promise<boolean>((resolve) => {
    const timer = clock.setTimer(afterMs, () => resolve(false));
    const end = (): void => {
      timer.cancel();
      resolve(true);
    };
    wait.then(end, end);
  });
  return isDone ? wait : pausing(pause, wait);
}

class PlacePause implements Pause {
  private waits = 0;
  private rejoining: Promise<void> | undefined;

  constructor(private readonly run: RunContext) {}

  begin(): void {
    this.waits++;
    if (this.waits === 1 && this.rejoining === undefined) this.run.park();
  }

  async end(): Promise<void> {
    this.waits--;
    if (this.waits > 0) return;
    this.rejoining ??= this.rejoin();
    await this.rejoining;
  }

  private async rejoin(): Promise<void> {
    await this.run.rejoin();
    this.rejoining = undefined;
    if (this.waits > 0) this.run.park(); // A wait has begun in the meantime.
  }
}

/** Ways to reach others, and how long to try. */
export interface Network {
  readonly clock: Clock;
  /** By scheme. Default: `tcp`, loaded when first needed. */
  readonly transports: readonly Transport[];
  /** Milliseconds for a connection to be made and answered. */
  readonly timeoutMs: number;
}

/**
 * Connects and introduces this side.
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
 */
export async function openChannelTo(
  address: string,
  role: Role,
  { clock, transports, timeoutMs }: Network,
  handlers: ChannelHandlers,
): Promise<Channel> {
  const transport = await transportFor(address, transports, clock);
  return openChannel({ transport, address, role, clock, timeoutMs }, handlers);
}

async function transportFor(
  address: string,
  transports: readonly Transport[],
  clock: Clock,
): Promise<Transport> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(address)?.[1];
  const found = transports.find((transport) => transport.scheme === scheme);
  if (found !== undefined) return found;
  if (scheme === 'tcp') {
    const { tcp } = await import('./tcp.ts');
    return tcp.create({ clock }, {});
  }
  if (scheme === 'tls') {
    const { tls } = await import('../transports/tls.ts');
    return tls.create({ clock }, {});
  }
  const known = [...transports.map((transport) => transport.scheme), 'tcp'].join(', ');
  throw new YardmasterError(
    'ERR_CONNECT',
    `"${address}" is not an address that this client can reach; use one like tcp://127.0.0.1:8786 (schemes: ${known})`,
    { address },
  );
}
