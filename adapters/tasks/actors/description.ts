import { deserialise, serialise } from '../serialise.ts';

/** Where an actor lives and what it can do: what others hold of it. */
export interface ActorDescription {
  /** Of the task that made it. */
  readonly key: string;
  /** Of the worker that it lives on. */
  readonly worker: string;
  /** Name of its class. */
  readonly type: string;
  readonly methods: readonly string[];
}

/** The format of values begins with 0xFF, so no value can be mistaken for a description. */
const MARK = new TextEncoder().encode('ymactor1');

/** As the result of the task that made the actor. */
export function serialiseActor(actor: ActorDescription): Uint8Array {
  const body = serialise(actor);
  const bytes = new Uint8Array(MARK.length + body.length);
  bytes.set(MARK);
  bytes.set(body, MARK.length);
  return bytes;
}

/** Undefined when the bytes are those of an ordinary value. Eight comparisons at most. */
export function readActor(bytes: Uint8Array): ActorDescription | undefined {
  for (let index = 0; index < MARK.length; index++) {
    if (bytes[index] !== MARK[index]) return undefined;
  }
  return deserialise(bytes.subarray(MARK.length)) as ActorDescription;
}
