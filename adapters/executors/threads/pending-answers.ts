import type { ErrorPayload, ExecutionResult } from '../../../core/api/index.ts';
import type { ToThread } from './messages.ts';

/** What was asked of a thread and has not been answered. */
export class PendingAnswers {
  private readonly asked = new Map<number, (result: ExecutionResult) => void>();
  private nextId = 0;

  /** @param post - sends the message, which is made with the id of the answer */
  ask(
    message: (id: number) => ToThread,
    post: (message: ToThread) => void,
  ): Promise<ExecutionResult> {
    return new Promise((resolve) => {
      const id = this.nextId++;
      this.asked.set(id, resolve);
      post(message(id));
    });
  }

  settle(id: number, result: ExecutionResult): void {
    const resolve = this.asked.get(id);
    this.asked.delete(id);
    resolve?.(result);
  }

  /** The thread is gone. */
  failAll(error: ErrorPayload): void {
    for (const resolve of this.asked.values()) resolve({ kind: 'failure', error });
    this.asked.clear();
  }
}
