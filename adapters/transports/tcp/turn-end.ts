/**
 * Calls back at the end of this turn of the event loop, when all that can be read now has been
 * handled: what many stimuli caused for one peer leaves in one frame. One `setImmediate` serves all
 * connections.
 */
export class TurnEnd {
  private callbacks: (() => void)[] = [];

  /** Called at most once per connection and turn. */
  add(callback: () => void): void {
    if (this.callbacks.push(callback) === 1) {
      setImmediate(() => {
        const { callbacks } = this;
        this.callbacks = [];
        for (const each of callbacks) each();
      });
    }
  }
}
