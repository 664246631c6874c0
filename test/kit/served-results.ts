import type { Clock, DataStore, Executor } from '../../core/api/index.ts';
import { DataServer } from '../../core/worker-host/data-server.ts';
import type { WorkerMemory } from '../../core/worker-host/worker-memory.ts';

/** Bytes of which no two parts are the same. */
export function pattern(nbytes: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(nbytes);
  for (let at = 0, value = seed; at < nbytes; at += 97) bytes[at] = value = (value * 31 + 7) % 251;
  return bytes;
}

/** The side of a worker that gives the results of a store to others. */
export function serverOf(
  clock: Clock,
  store: DataStore,
  worker: Partial<Parameters<DataServer['connect']>[0]> = {},
): DataServer {
  const noteGarbage = (): void => undefined;
  const memory = { store, noteGarbage, moved: { received: 0, sent: 0 } };
  const server = new DataServer(
    'peer',
    clock,
    memory as unknown as WorkerMemory,
    {
      threadCount: 1,
    } as Executor,
  );
  server.connect({
    outgoingMax: () => 50,
    runIdOf: () => -1,
    typeOf: () => undefined,
    putData: () => undefined,
    identity: () => ({}),
    ...worker,
  });
  return server;
}
