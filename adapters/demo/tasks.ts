/** The functions that workers of the demo run. */
import { defineTasks } from '../tasks/index.ts';
import {
  type BandRange,
  findFamilies,
  fingerprintFiles as fingerprint,
  type Fingerprints,
  joinFingerprints,
  linkDocuments,
  type Links,
  type NearDuplicates,
} from './near-duplicates.ts';

export const { fingerprintFiles, collect, compare, families } = defineTasks(import.meta.url, {
  fingerprintFiles: fingerprint,

  collect(parts: readonly Fingerprints[]): Fingerprints {
    return joinFingerprints(parts);
  },

  compare(parts: readonly Fingerprints[], range: BandRange): Links {
    return linkDocuments(joinFingerprints(parts), range);
  },

  families(links: readonly Links[], parts: readonly Fingerprints[]): NearDuplicates {
    return findFamilies(links, joinFingerprints(parts));
  },
});
