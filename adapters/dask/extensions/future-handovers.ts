import { inBackground } from '../../../core/shared/background.ts';
import type { Fields } from '../context.ts';
import { type Coordination, type GivenValue, nameIn } from './coordination.ts';

interface Handover {
  readonly id: number;
  /** What the client gives back; undefined: the oldest of the name and key is meant. */
  readonly token: string | undefined;
}

/** Futures that were given to clients, until these say that they hold them. */
export class FutureHandovers {
  private readonly open = new Map<string, Handover[]>();

  constructor(private readonly coordination: Coordination) {}

  /** @param name - of the queue or variable */
  add(name: string, key: string, { handover: id }: GivenValue, token?: string): void {
    if (id === undefined) return;
    const place = placeOf(name, key);
    const line = this.open.get(place);
    if (line === undefined) this.open.set(place, [{ id, token }]);
    else line.push({ id, token });
  }

  /**
   * The client has its future now. Since 2024, releases of Dask do not ask for its key themselves.
   */
  received(message: Fields, client: string): void {
    const { context } = this.coordination;
    const key = context.keys.textOf(message['key']);
    context.desireKeys(client, [key]);
    const place = placeOf(nameIn(message), key);
    const line = this.open.get(place);
    if (line === undefined) return;
    const { token } = message;
    const index = token === undefined ? 0 : line.findIndex((each) => each.token === token);
    const [handover] = index < 0 ? [] : line.splice(index, 1);
    if (line.length === 0) this.open.delete(place);
    if (handover === undefined) return;
    // The request for the key may wait behind a large graph; until then the hand-over keeps the
    // result.
    const ended = context.graphsSettled(client).then(() => this.end(handover.id, client));
    inBackground(ended, () => this.end(handover.id, client));
  }

  /** The hand-over is the client's when it has asked under its id, and of no client otherwise. */
  private end(handover: number, client: string): void {
    for (const who of [client, undefined]) this.coordination.notify('received', { handover }, who);
  }
}

function placeOf(name: string, key: string): string {
  return JSON.stringify([name, key]);
}
