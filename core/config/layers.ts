import type { ConfigInput } from './types.ts';
import { isPlainObject } from '../util/plain-object.ts';

/** Configurations around the one that is loaded. */
export interface ConfigLayers {
  /** Below it: what it says wins, key by key. */
  readonly defaults?: ConfigInput;
  /** Above it: these win, key by key. */
  readonly overrides?: ConfigInput;
}

/**
 * One configuration on top of another, key by key. A place that names an extension (`use`), a list and a
 * single value replace what is below them. Null in the place of a section says nothing.
 */
export function overlay(below: unknown, above: unknown): unknown {
  if (above === undefined) return below;
  if (above === null && isPlainObject(below)) return below;
  if (!isPlainObject(below) || !isPlainObject(above) || 'use' in above) return above;
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const old = Object.hasOwn(below, key) ? below[key] : undefined;
    Object.defineProperty(merged, key, {
      value: overlay(old, value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return merged;
}
