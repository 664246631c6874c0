import type { Document } from './documents.ts';
import { readWords } from './documents.ts';
import { fingerprintOf } from './fingerprint.ts';
import {
  BAND_COUNT,
  findFamilies,
  type Fingerprints,
  joinFingerprints,
  linkDocuments,
  type NearDuplicates,
} from './near-duplicates.ts';

/** The same in one thread and in the plainest way: one document after the other, then all bands. */
export function singlePass(documents: readonly Document[]): NearDuplicates {
  const parts: Fingerprints[] = [];
  documents.forEach(({ path }, number) => {
    const bytes = fingerprintOf(readWords(path));
    if (bytes !== undefined) parts.push({ documents: Uint32Array.of(number), bytes });
  });
  const all = joinFingerprints(parts);
  return findFamilies([linkDocuments(all, { first: 0, count: BAND_COUNT })], all);
}
