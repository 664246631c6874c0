import type { Document } from './documents.ts';
import { fingerprintFiles } from './fingerprint-files.ts';
import { BAND_COUNT, findFamilies, linkDocuments, type NearDuplicates } from './near-duplicates.ts';

/** The same in one thread and in the plainest way: one document after the other, then all bands. */
export function singlePass(documents: readonly Document[]): NearDuplicates {
  const paths = documents.map(({ path }) => path);
  const all = fingerprintFiles(paths, 0);
  return findFamilies([linkDocuments(all, { first: 0, count: BAND_COUNT })], all);
}
