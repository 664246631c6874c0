import type { Channel, WhoHasReply } from '../../core/api/index.ts';
import { fetchData } from '../../core/shared/fetch-data.ts';
import { inBackground } from '../../core/shared/timers.ts';
import type { Peers, Serialised } from '../peers/peers.ts';
import { ScatteredValue } from '../tasks/index.ts';
import type { KeyEntry } from './entry.ts';

/** Bytes asked for in one request, unless one result alone has more. */
const REQUEST_BYTES_MAX = 32 * 1024 * 1024;
const REQUEST_KEYS_MAX = 2000;
/** Holders tried per key before the scheduler is asked to fetch it. */
const ROUNDS_MAX = 3;

/** The options of fetching results. */
export interface FetchOptions {
  /** False: the scheduler fetches it, for clients that cannot reach the workers. Default true. */
  readonly direct?: boolean;
}

type Allocate = (key: string, nbytes: number) => Serialised;

interface Wanted {
  readonly entry: KeyEntry;
  readonly direct: boolean;
  readonly resolve: (bytes: Serialised | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Fetches results from the workers that hold them: what is asked for in one turn of the event loop
 * goes into few requests, each with many keys.
 */
export class Fetcher {
  private wanted: Wanted[] = [];

  constructor(
    /** The connection to the scheduler. */
    private readonly scheduler: () => Promise<Channel>,
    private readonly peers: Peers,
  ) {}

  /**
   * The serialised result, or undefined when no worker has it (any more).
   * @throws YardmasterError `ERR_CLOSED` when the connection to the scheduler has ended
   */
  fetch(entry: KeyEntry, { direct = true }: FetchOptions = {}): Promise<Serialised | undefined> {
    return new Promise((resolve, reject) => {
      if (this.wanted.length === 0) {
        queueMicrotask(() => process.nextTick(() => this.start()));
      }
      this.wanted.push({ entry, direct, resolve, reject });
    });
  }

  private start(): void {
    const wanted = this.wanted;
    this.wanted = [];
    for (const direct of [true, false]) {
      const group = wanted.filter((item) => item.direct === direct);
      if (group.length === 0) continue;
      inBackground(this.serve(group, direct), (error) => {
        for (const { reject } of group) reject(error);
      });
    }
  }

  private async serve(wanted: readonly Wanted[], direct: boolean): Promise<void> {
    try {
      const entries = new Map(wanted.map(({ entry }) => [entry.key, entry]));
      const found = new Map<string, Serialised>();
      const allocate = allocatorFor(wanted);
      if (direct) await this.fromWorkers(entries, found, allocate);
      await this.throughScheduler(entries, found, allocate);
      for (const { entry, resolve } of wanted) resolve(found.get(entry.key));
    } catch (error) {
      for (const { reject } of wanted) reject(error);
    }
  }

  private async fromWorkers(
    entries: ReadonlyMap<string, KeyEntry>,
    found: Map<string, Serialised>,
    allocate: Allocate,
  ): Promise<void> {
    const unreachable = new Set<string>();
    let holders = new Map([...entries].map(([key, entry]) => [key, entry.workers]));
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const requests = share(holders, entries, unreachable);
      await Promise.all(
        [...requests].map(async ([address, batches]) => {
          for (const batch of batches) {
            try {
              for (const [key, bytes] of await this.peers.getData(address, batch, allocate)) {
                found.set(key, bytes);
              }
            } catch {
              // Gone or out of reach: the next round asks others, the last resort the scheduler.
              unreachable.add(address);
              return;
            }
          }
        }),
      );
      const missing = [...entries.keys()].filter((key) => !found.has(key));
      if (missing.length === 0) return;
      holders = await this.whoHas(missing);
    }
  }

  private async throughScheduler(
    entries: ReadonlyMap<string, KeyEntry>,
    found: Map<string, Serialised>,
    allocate: Allocate,
  ): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const missing = [...entries.values()].filter(({ key }) => !found.has(key));
      let isCutOff = false;
      for (const keys of batchesOf(missing)) {
        const options = { method: 'gather', allocate } as const;
        const { values, lost } = await fetchData(await this.scheduler(), keys, options);
        for (const [key, bytes] of values) found.set(key, bytes);
        isCutOff ||= lost.size > 0;
      }
      if (!isCutOff) return; // No worker has the missing results.
    }
  }

  private async whoHas(keys: readonly string[]): Promise<Map<string, readonly string[]>> {
    const channel = await this.scheduler();
    const reply = await channel.request<WhoHasReply>('who-has', { keys });
    return new Map(reply.keys.map((key, index) => [key, reply.whoHas[index] ?? []]));
  }
}

/**
 * Chooses the memory of a result: parts that are collected apart become one value; what is wanted by several has to be copied.
 */
function allocatorFor(wanted: readonly Wanted[]): Allocate {
  const counts = new Map<string, number>();
  for (const { entry } of wanted) counts.set(entry.key, (counts.get(entry.key) ?? 0) + 1);
  return (key, nbytes) =>
    counts.get(key) === 1 ? new ScatteredValue(nbytes) : new Uint8Array(nbytes);
}

/** Deals keys to their holders, each to the one with the fewest bytes so far. */
function share(
  holders: ReadonlyMap<string, readonly string[]>,
  entries: ReadonlyMap<string, KeyEntry>,
  unreachable: ReadonlySet<string>,
): Map<string, string[][]> {
  const loads = new Map<string, { nbytes: number; entries: KeyEntry[] }>();
  for (const [key, addresses] of holders) {
    const entry = entries.get(key);
    if (entry === undefined) continue;
    let chosen: string | undefined;
    for (const address of addresses) {
      if (unreachable.has(address)) continue;
      const load = loads.get(address)?.nbytes ?? 0;
      if (chosen === undefined || load < (loads.get(chosen)?.nbytes ?? 0)) chosen = address;
    }
    if (chosen === undefined) continue;
    let load = loads.get(chosen);
    if (load === undefined) loads.set(chosen, (load = { nbytes: 0, entries: [] }));
    load.nbytes += entry.nbytes;
    load.entries.push(entry);
  }
  return new Map([...loads].map(([address, load]) => [address, batchesOf(load.entries)]));
}

function batchesOf(entries: readonly KeyEntry[]): string[][] {
  const batches: string[][] = [];
  let batch: string[] = [];
  let nbytes = 0;
  for (const entry of entries) {
    const isFull = nbytes + entry.nbytes > REQUEST_BYTES_MAX || batch.length >= REQUEST_KEYS_MAX;
    if (isFull && batch.length > 0) {
      batches.push(batch);
      batch = [];
      nbytes = 0;
    }
    batch.push(entry.key);
    nbytes += entry.nbytes;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
