/** A step towards the wanted number of workers. */
type ScalingStep =
  | { readonly kind: 'none' }
  /** Start this many more workers. */
  | { readonly kind: 'up'; readonly count: number }
  /** Close these. */
  | { readonly kind: 'down'; readonly names: readonly string[] };

/** Bounds and patience of adaptive scaling. */
interface AdaptivePlanOptions {
  readonly minimum: number;
  /** May be Infinity. */
  readonly maximum: number;
  /** A worker is closed after it was closable in this many consecutive checks. */
  readonly waitCount: number;
}

const NOTHING: ScalingStep = { kind: 'none' };

/**
 * Decides how many workers there should be: more at once, fewer only after some patience. It
 * remembers which workers were closable in the last checks. Dask's `Adaptive`.
 */
export class AdaptivePlan {
  private readonly looks = new Map<string, number>();

  constructor(private readonly options: AdaptivePlanOptions) {}

  /**
   * @param target - workers that the present work could use
   * @param current - workers that are running or being started
   * @param closable - returns the names of the workers to close so that `leave` workers remain
   */
  next(
    target: number,
    current: number,
    closable: (leave: number) => readonly string[],
  ): ScalingStep {
    const { minimum, maximum, waitCount } = this.options;
    const wanted = Math.max(minimum, Math.min(maximum, target));
    if (wanted >= current) {
      this.looks.clear();
      return wanted === current ? NOTHING : { kind: 'up', count: wanted - current };
    }
    const candidates = new Set(closable(wanted));
    for (const name of this.looks.keys()) if (!candidates.has(name)) this.looks.delete(name);
    const names: string[] = [];
    for (const name of candidates) {
      const looks = (this.looks.get(name) ?? 0) + 1;
      this.looks.set(name, looks);
      if (looks >= waitCount) names.push(name);
    }
    for (const name of names) this.looks.delete(name);
    return names.length === 0 ? NOTHING : { kind: 'down', names };
  }
}
