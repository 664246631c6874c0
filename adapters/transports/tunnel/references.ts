import type { WireMessage } from '../../../core/api/index.ts';
import { sharedMemoryOf, usesSharedMemory } from '../../../core/util/shared-memory.ts';
import { withSharedMemory } from '../../tasks/index.ts';

/** Bytes in messages that refer to shared memory: where they are, and to what. */
export interface Reference {
  readonly path: readonly (string | number)[];
  readonly memories: readonly SharedArrayBuffer[];
}

/** What goes from thread to thread along with the encoded messages; undefined: nothing. */
export function referencesIn(messages: readonly WireMessage[]): readonly Reference[] | undefined {
  if (!usesSharedMemory()) return undefined;
  const found: Reference[] = [];
  const stack: [value: unknown, path: Reference['path']][] = [[messages, []]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [value, path] = next;
    if (typeof value !== 'object' || value === null) continue;
    if (value instanceof Uint8Array) {
      const memories = sharedMemoryOf(value)?.memories;
      if (memories !== undefined) found.push({ path, memories });
    } else if (Array.isArray(value)) {
      value.forEach((item, index) => stack.push([item, [...path, index]]));
    } else {
      for (const [name, field] of Object.entries(value)) stack.push([field, [...path, name]]);
    }
  }
  return found.length === 0 ? undefined : found;
}

/** Has the bytes of decoded messages refer to shared memory as those did that were encoded. */
export function refer(
  messages: readonly WireMessage[],
  references: readonly Reference[] | undefined,
): void {
  for (const { path, memories } of references ?? []) {
    let value: unknown = messages;
    for (const step of path) value = (value as Readonly<Record<string | number, unknown>>)[step];
    withSharedMemory(value as Uint8Array, memories);
  }
}
