import type { MemoryMeasure } from '../../core/api/index.ts';
import { PythonException } from './rpc/py-errors.ts';

/** Dask's names of the measures of memory, of all releases, and what they are here. */
export const MEASURES = {
  process: 'process',
  managed: 'managedTotal',
  managed_in_memory: 'managed',
  managed_spilled: 'spilled',
  spilled: 'spilled',
  unmanaged: 'unmanaged',
  unmanaged_old: 'unmanagedOld',
  unmanaged_recent: 'unmanagedRecent',
  optimistic: 'optimistic',
} as const satisfies Readonly<Record<string, MemoryMeasure>>;

/** @throws PythonException `ValueError` naming those that there are */
export function measureNamed(name: unknown): MemoryMeasure {
  const known = Object.keys(MEASURES);
  if (typeof name === 'string' && known.includes(name)) {
    return MEASURES[name as keyof typeof MEASURES];
  }
  throw new PythonException('ValueError', `measure must be one of ${known.join(', ')}`);
}
