import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { listIn, numberIn } from '../codec/values.ts';
import { nameIn, timeoutIn } from './coordination.ts';

interface Request {
  readonly id: unknown;
  /** Names of locks in whose queues it waits. */
  readonly locks: Set<string>;
  /** Locks that it still needs. */
  leftCount: number;
  grant: () => void;
}

/**
 * `distributed.MultiLock`: takes several locks, or some of them, at once. Their names are separate
 * from those of the scheduler's coordination, which has no such primitive.
 */
export const makeMultiLocks: MakeExtension = (context): DaskExtension => {
  const locks = new MultiLocks(context);
  return {
    rpc: {
      multi_lock_acquire: (request) => locks.acquire(request),
      multi_lock_release: ({ id }) => locks.release(id),
    },
  };
};

class MultiLocks {
  /** The waiting clients of each lock; the first one holds it. */
  private readonly lines = new Map<string, Request[]>();
  private readonly requests = new Map<unknown, Request>();

  constructor(private readonly context: DaskContext) {}

  async acquire(message: Fields): Promise<boolean> {
    const id = message['id'];
    const names = (listIn(message, 'locks') ?? []).map((name) => nameIn({ name }));
    const wantedCount = numberIn(message, 'num_locks') ?? names.length;
    if (this.requests.has(id) || wantedCount < 1 || wantedCount > names.length) {
      throw new PythonException(
        'ValueError',
        `a MultiLock wants 1 to ${names.length} of its locks, each time after it has released them; got ${wantedCount}`,
      );
    }
    const request: Request = {
      id,
      locks: new Set(),
      leftCount: wantedCount,
      grant: () => undefined,
    };
    this.requests.set(id, request);
    if (this.enterLines(request, names)) return true;
    return this.wait(request, timeoutIn(message));
  }

  release(id: unknown): void {
    const request = this.requests.get(id);
    if (request === undefined) {
      throw new PythonException('KeyError', 'this MultiLock has not been acquired');
    }
    this.leave(request);
  }

  /** The shortest lines first. Whether it holds as many locks as it wants. */
  private enterLines(request: Request, names: readonly string[]): boolean {
    const lengthOf = (name: string): number => this.lines.get(name)?.length ?? 0;
    for (const name of [...names].sort((a, b) => lengthOf(a) - lengthOf(b))) {
      const line = this.lines.get(name) ?? [];
      this.lines.set(name, line);
      line.push(request);
      request.locks.add(name);
      if (line.length === 1 && --request.leftCount === 0) return true;
    }
    return false;
  }

  private wait(request: Request, timeoutMs = Infinity): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.context.clock.setTimer(timeoutMs, () => {
        this.leave(request);
        resolve(false);
      });
      request.grant = () => {
        timer.cancel();
        resolve(true);
      };
    });
  }

  private leave(request: Request): void {
    this.requests.delete(request.id);
    for (const name of request.locks) {
      const line = this.lines.get(name) ?? [];
      const place = line.indexOf(request);
      line.splice(place, 1);
      const [next] = line;
      if (next === undefined) this.lines.delete(name);
      else if (place === 0 && --next.leftCount === 0) next.grant();
    }
  }
}
