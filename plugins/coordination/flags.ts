import { entryBytes } from './budget.ts';
import type { CoordinationScope } from './scope.ts';
import { WaitQueue, type WaitRequest } from './wait-queue.ts';

interface Flag {
  isSet: boolean;
  readonly line: WaitQueue<true>;
}

/** Named events: set or not. An event exists while it is set or a call waits for it. */
export class Flags {
  private readonly flags = new Map<string, Flag>();

  constructor(private readonly scope: CoordinationScope) {}

  /** Sets the event; all waiting calls continue. */
  set(name: string): void {
    const flag = this.open(name);
    flag.isSet = true;
    while (flag.line.size > 0) flag.line.serve(() => true);
  }

  clear(name: string): void {
    const flag = this.flags.get(name);
    if (flag === undefined) return;
    flag.isSet = false;
    this.dropUnused(name, flag);
  }

  isSet(name: string): boolean {
    return this.flags.get(name)?.isSet ?? false;
  }

  wait(name: string, request: Omit<WaitRequest, 'what'>): true | Promise<true> {
    if (this.isSet(name)) return true;
    const flag = this.open(name);
    try {
      return flag.line.wait({ ...request, what: `the event "${name}"` }, undefined);
    } catch (error) {
      this.dropUnused(name, flag);
      throw error;
    }
  }

  private open(name: string): Flag {
    const known = this.flags.get(name);
    if (known !== undefined) return known;
    this.scope.budget.charge(entryBytes(name), `the event "${name}"`);
    const flag: Flag = {
      isSet: false,
      line: new WaitQueue(this.scope, () => this.dropUnused(name, flag)),
    };
    this.flags.set(name, flag);
    return flag;
  }

  private dropUnused(name: string, { isSet, line }: Flag): void {
    if (isSet || line.size > 0) return;
    if (this.flags.delete(name)) this.scope.budget.free(entryBytes(name));
  }
}
