/** The functions that workers of the demo run. */
import { defineTasks } from '../tasks/index.ts';
import { readWords } from './documents.ts';
import { fingerprintOf } from './fingerprint.ts';
import {
  type BandRange,
  findFamilies,
  type Fingerprints,
  joinFingerprints,
  linkDocuments,
  type Links,
  type NearDuplicates,
} from './near-duplicates.ts';

export const { fingerprintFiles, collect, compare, families } = defineTasks(import.meta.url, {
  /** Reads a few files; the first has document number `first`. */
  fingerprintFiles(paths: readonly string[], first: number): Fingerprints {
    const parts: Fingerprints[] = [];
    for (const [index, path] of paths.entries()) {
      const bytes = fingerprintOf(readWords(path));
      if (bytes !== undefined) parts.push({ documents: Uint32Array.of(first + index), bytes });
    }
    return joinFingerprints(parts);
  },

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
