import type { Clock } from '../../core/api/index.ts';
import type { RunContext } from '../tasks/index.ts';

/** What is done around every wait of a task for the cluster. */
export interface Pause {
  begin(): void;
  /** Resolves when the task may continue. */
  end(): Promise<void>;
}

/** One for each run: waits of its client and of its handles count together. */
const pauses = new WeakMap<RunContext, Pause>();

/** Parks the run when the first wait begins, rejoins when the last one has ended. */
export function pauseOf(run: RunContext): Pause {
  let pause = pauses.get(run);
  if (pause === undefined) pauses.set(run, (pause = new PlacePause(run)));
  return pause;
}

/** Waits, and gives the place away meanwhile. */
export async function pausing<T>(pause: Pause | undefined, wait: Promise<T>): Promise<T> {
  if (pause === undefined) return wait;
  pause.begin();
  try {
    return await wait;
  } finally {
    await pause.end();
  }
}

/** The same for what is rarely long: the place is kept for a moment. */
export async function pausingLater<T>(
  pause: Pause | undefined,
  wait: Promise<T>,
  { clock, afterMs }: { readonly clock: Clock; readonly afterMs: number },
): Promise<T> {
  if (pause === undefined) return wait;
  const isDone = await new Promise<boolean>((resolve) => {
    const timer = clock.setTimer(afterMs, () => resolve(false));
    const end = (): void => {
      timer.cancel();
      resolve(true);
    };
    wait.then(end, end);
  });
  return isDone ? wait : pausing(pause, wait);
}

class PlacePause implements Pause {
  private waits = 0;
  private rejoining: Promise<void> | undefined;

  constructor(private readonly run: RunContext) {}

  begin(): void {
    this.waits++;
    if (this.waits === 1 && this.rejoining === undefined) this.run.park();
  }

  async end(): Promise<void> {
    this.waits--;
    if (this.waits > 0) return;
    this.rejoining ??= this.rejoin();
    await this.rejoining;
  }

  private async rejoin(): Promise<void> {
    await this.run.rejoin();
    this.rejoining = undefined;
    if (this.waits > 0) this.run.park(); // A wait has begun in the meantime.
  }
}
