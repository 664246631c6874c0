/** Ids of one chunk. */
const CHUNK = 65_536;

/** A set of small, dense, whole numbers that never takes long to grow, as a large `Set` does. */
export class IdSet {
  private readonly chunks: (Uint8Array | undefined)[] = [];

  /** Returns false when it was there already. */
  add(id: number): boolean {
    const place = id % CHUNK;
    const number = (id - place) / CHUNK;
    const chunk = (this.chunks[number] ??= new Uint8Array(CHUNK));
    if (chunk[place] !== 0) return false;
    chunk[place] = 1;
    return true;
  }
}
