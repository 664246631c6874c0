/** Workers report no threads: more rows than this are not made for one. */
const LANES_MAX = 512;

/** Workers start clocks a little apart. */
const TOLERANCE_S = 0.0005;

/** A thread of a worker in the task stream. */
export interface Lane {
  readonly worker: string;
  readonly lane: number;
  /** Name of the worker, when no table has it: it has left. */
  name?: string;
}

/**
 * Gives each computation a row such that those of one row do not overlap. Reports come in the order of their ends, so
 * that the row whose last end is the latest one before the start leaves the others free for longer tasks.
 */
export class Lanes {
  readonly rows: Lane[] = [];
  private readonly workers = new Map<string, { readonly row: number; stopS: number }[]>();

  rowFor(worker: string, startS: number, stopS: number): number {
    let lanes = this.workers.get(worker);
    if (lanes === undefined) this.workers.set(worker, (lanes = []));
    let best: { readonly row: number; stopS: number } | undefined;
    for (const lane of lanes) {
      if (lane.stopS > startS + TOLERANCE_S) continue;
      if (best === undefined || lane.stopS > best.stopS) best = lane;
    }
    if (best === undefined && lanes.length < LANES_MAX) {
      const row = this.rows.push({ worker, lane: lanes.length }) - 1;
      lanes.push((best = { row, stopS }));
    }
    best ??= lanes[0];
    if (best === undefined) return 0;
    best.stopS = Math.max(best.stopS, stopS);
    return best.row;
  }

  /** The row of a thread that is known by its number. */
  rowOf(worker: string, lane: number): number {
    let lanes = this.workers.get(worker);
    if (lanes === undefined) this.workers.set(worker, (lanes = []));
    while (lanes.length <= lane) {
      const row = this.rows.push({ worker, lane: lanes.length }) - 1;
      lanes.push({ row, stopS: 0 });
    }
    return lanes[lane]?.row ?? 0;
  }

  /** A worker of the same address gets new rows. */
  forget(worker: string, name: string): void {
    this.nameRows(worker, name);
    this.workers.delete(worker);
  }

  nameRows(worker: string, name: string): void {
    for (const { row } of this.workers.get(worker) ?? []) {
      const lane = this.rows[row];
      if (lane !== undefined) lane.name = name;
    }
  }
}
