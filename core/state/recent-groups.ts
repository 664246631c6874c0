import type { TaskGroup } from './groups.ts';
import { isNameEnd } from './key-names.ts';

const SLOTS = 64;

/**
 * Groups of plain keys (`name-123`, `name-ab31c0…`) that were met lately, found without cutting the name out of the
 * key: a graph of a million tasks has a million keys and a handful of names.
 */
export class RecentGroups {
  private readonly slots: (TaskGroup | undefined)[] = [];

  /** The group of a plain key, or undefined when the key is not plain or the group not remembered. */
  find(key: string): TaskGroup | undefined {
    const dash = key.indexOf('-');
    const group = this.slots[slotOf(key, dash)];
    if (group?.name.length !== dash || !key.startsWith(group.name)) return undefined;
    return isNameEnd(key, dash) ? group : undefined;
  }

  remember(key: string, group: TaskGroup): void {
    const dash = key.indexOf('-');
    if (group.name.length === dash && isNameEnd(key, dash)) this.slots[slotOf(key, dash)] = group;
  }

  clear(): void {
    this.slots.length = 0;
  }
}

function slotOf(key: string, dash: number): number {
  return (key.charCodeAt(0) + 7 * key.charCodeAt(dash - 1) + dash) & (SLOTS - 1);
}
