import {
  type Channel,
  type ErrorPayload,
  RemoteError,
  YardmasterError,
} from '../../core/api/index.ts';
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

  constructor(private readonly peers: Peers) {}

  /**
   * The serialised answer.
   * @throws RemoteError what the method threw
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
      const { answer } = await this.inTurn(worker, (channel) => ({
        answer: channel.request<ActorReply>('actor-call', parameters),
      }));
      const { value, error } = await answer;
      if (error !== undefined) throw new RemoteError(error);
      if (value instanceof Uint8Array) return value;
      throw new YardmasterError('ERR_PROTOCOL', `${worker} answered a call without a value`);
    } catch (error) {
      if (error instanceof RemoteError || YardmasterError.is(error, 'ERR_NOT_SERIALISABLE'))
        throw error;
      throw actorLost(key, error);
    }
  }

  private inTurn<T>(worker: string, send: (channel: Channel) => T): Promise<T> {
    const before = this.lines.get(worker) ?? Promise.resolve();
    const sent = before.then(async () => send(await this.peers.channelTo(worker)));
    const line = sent.then(
      () => undefined,
      () => undefined,
    );
    this.lines.set(worker, line);
    void line.then(() => {
      if (this.lines.get(worker) === line) this.lines.delete(worker);
    });
    return sent;
  }
}
