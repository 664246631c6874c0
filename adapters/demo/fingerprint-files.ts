import { readWords } from './documents.ts';
import { fingerprintOf } from './fingerprint.ts';
import { type Fingerprints, joinFingerprints } from './near-duplicates.ts';

/** Reads a few files; the first has document number `first`. Those that are too short are left out. */
export function fingerprintFiles(paths: readonly string[], first: number): Fingerprints {
  const parts: Fingerprints[] = [];
  for (const [index, path] of paths.entries()) {
    const bytes = fingerprintOf(readWords(path));
    if (bytes !== undefined) parts.push({ documents: Uint32Array.of(first + index), bytes });
  }
  return joinFingerprints(parts);
}
