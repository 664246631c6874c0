import type { Fields } from '../context.ts';
import { type Coordination, type GivenValue, nameIn } from './coordination.ts';

interface Handover {
  readonly id: number;
  /** What the client gives back; undefined: the oldest of the name and key is meant. */
  readonly token: string | undefined;
}

/** Futures that were given to clients, until these say that they hold them. */
export class Handovers {
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

  /** The client has its future now. Releases since 2024 do not wish for it themselves. */
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
    // The client's own, when it is the one that asked; nobody's otherwise.
    for (const who of [client, undefined]) {
      void this.coordination.call('received', { handover: handover.id }, who);
    }
  }
}

function placeOf(name: string, key: string): string {
  return JSON.stringify([name, key]);
}
