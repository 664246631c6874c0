/** Compiles only while the types of actors say what they promise. */
import { type Client, type Future, ref, task } from '../../adapters/client/index.ts';
import { type ActorHandle, defineTasks } from '../../adapters/tasks/index.ts';

class Ledger {
  total = 0;
  private readonly secret = 1;

  constructor(
    readonly owner: string,
    start?: number,
  ) {
    this.total = start ?? this.secret;
  }

  add(amount: number, note?: string): number {
    this.total += amount;
    return note === undefined ? this.total : 0;
  }

  async entries(): Promise<Date[]> {
    return Promise.resolve([]);
  }
}

const defined = defineTasks('file:///tasks.js', {
  Ledger,
  half: (x: number) => x / 2,
  async use(ledger: ActorHandle<Ledger>): Promise<string> {
    return ledger.owner;
  },
});
declare const client: Client;

export const future: Future<ActorHandle<Ledger>> = client.submitActor(defined.Ledger, 'ada', 3);
export const submitted: Future<ActorHandle<Ledger>> = client.submit(defined.Ledger, 'ada');
export const mapped: Future<ActorHandle<Ledger>>[] = client.map(defined.Ledger, ['a', 'b'], [1, 2]);
export const local: Ledger = new defined.Ledger('here');
export const half: Future<number> = client.submit(defined.half, 1);
declare const ledger: ActorHandle<Ledger>;
export const sum: Promise<number> = ledger.add(1, 'note');
export const dates: Promise<Date[]> = ledger.entries();
export const total: PromiseLike<number> = ledger.total;
export const usedHandle: Future<string> = client.submit(defined.use, ledger);
export const usedFuture: Future<string> = client.submit(defined.use, future);
const graph = {
  ledger: task(defined.Ledger, 'ada'),
  used: task(defined.use, ref<ActorHandle<Ledger>>('ledger')),
};
export const inGraph: Future<string> = client.compute(graph, 'used');
export const retried: Future<ActorHandle<Ledger>> = client
  .with({ resources: { GPU: 1 } })
  .submitActor(defined.Ledger, 'bob');

// @ts-expect-error the constructor wants a name
client.submitActor(defined.Ledger);
// @ts-expect-error of the right type
client.submitActor(defined.Ledger, 1);
// @ts-expect-error a function is no class
client.submitActor(defined.half, 1);
// @ts-expect-error an argument of a wrong type
void ledger.add('one');
// @ts-expect-error a method that does not exist
export const removed: unknown = ledger.remove;
// @ts-expect-error a private field
export const secret: unknown = ledger.secret;
// @ts-expect-error properties cannot be set
ledger.total = 1;
// @ts-expect-error a handle is not what is behind it
export const notLocal: Ledger = ledger;

// Functions that are run beside tasks.
export const onAll: Promise<Map<string, number>> = client.run(defined.half, 1);
export const inThreads: Promise<Map<string, number[]>> = client
  .on({ place: 'threads' })
  .run(defined.half, 1);
export const withErrors: Promise<Map<string, number | Error>> = client
  .on({ errors: 'return' })
  .run(defined.half, 1);
// @ts-expect-error an argument of a wrong type
void client.run(defined.half, 'one');
// @ts-expect-error not a place
client.on({ place: 'cellar' });
