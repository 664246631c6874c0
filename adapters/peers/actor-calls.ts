import {
  type ErrorPayload,
  RemoteError,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/background.ts';
import { type ActorDescription, actorLost, type ActorRequest } from '../tasks/index.ts';
import type { Peers } from './peers.ts';

/** What a worker answers to `actor-call`. */
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
      ...(args === undefined ? {} : { args }),
      ...(actors === undefined ? {} : { actors }),
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
        const isOutOfReach = YardmasterError.is(error, 'ERR_CONNECT');
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

/** What the scheduler says against it is not what the method throws. */
async function lostIfRefused(answer: Promise<ActorReply>): Promise<ActorReply> {
  try {
    return await answer;
  } catch (error) {
    throw new Error(`the scheduler could not pass it on: ${String(error)}`, { cause: error });
  }
}
