import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { YardmasterError } from '../../core/api/index.ts';
import { textOf, wordsOf } from './text.ts';

/** Larger files are left out: they are data, not text. */
const FILE_BYTES_MAX = 512 * 1024;
const TEXT_FILE = /\.(?:md|txt|rst|html?|ts|js|mjs|cjs|json|yml|yaml|c|h|py|[1-9][a-z0-9]*)$/i;
const BARE_TEXT_FILE = /(?:^|\/)(?:readme|changelog|copyright|license|news|authors|todo)[^/]*$/i;

/** What is to be indexed. */
export interface Corpus {
  readonly folder: string;
  /** Paths in the order of their document numbers. */
  readonly paths: readonly string[];
  /** Files that were there before the limit. */
  readonly found: number;
}

/** Folders with readable text, best first. */
const USUAL_FOLDERS = ['/usr/share/man', '/usr/share/doc', 'node_modules'] as const;
/** A folder with fewer files makes no demo. */
const USUAL_FILES_MIN = 100;

/**
 * The text files of a folder, in the order of their names; beyond the limit evenly spread over all.
 * Always the same for the same files.
 *
 * @param folder - default: manual pages, other documentation, or this package itself
 * @throws YardmasterError `ERR_CONFIG` when there is nothing to index
 */
export function findCorpus(folder: string | undefined, limit: number): Corpus {
  const enough = folder === undefined ? USUAL_FILES_MIN : 1;
  for (const candidate of folder === undefined ? [...USUAL_FOLDERS, ownFolder()] : [folder]) {
    const found = textFilesIn(candidate);
    if (found.length < enough) continue;
    return { folder: candidate, paths: spread(found, limit), found: found.length };
  }
  throw new YardmasterError(
    'ERR_CONFIG',
    `there are no text files in ${folder ?? USUAL_FOLDERS.join(', ')}; name a folder with --path`,
    { path: folder },
  );
}

/** The words of one document; a file that cannot be read has none. */
export function readWords(path: string): readonly string[] {
  let content: Uint8Array;
  try {
    content = readFileSync(path);
  } catch {
    return [];
  }
  return wordsOf(textOf(path, content));
}

function ownFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('yardmaster/package.json'));
}

function textFilesIn(folder: string): string[] {
  const found: string[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const entry of entriesOf(next)) {
      const path = join(next, entry.name);
      // Links lead to files that are found anyway, or out of the folder.
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && isText(path)) found.push(path);
    }
  }
  return found.sort();
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // Not there, or not ours to read.
  }
}

function isText(path: string): boolean {
  const bare = path.endsWith('.gz') ? path.slice(0, -3) : path;
  if (!TEXT_FILE.test(bare) && !BARE_TEXT_FILE.test(bare)) return false;
  try {
    return statSync(path).size <= FILE_BYTES_MAX;
  } catch {
    return false;
  }
}

function spread(paths: readonly string[], limit: number): string[] {
  if (paths.length <= limit) return [...paths];
  return Array.from(
    { length: limit },
    (_, index) => paths[Math.floor((index * paths.length) / limit)] as string,
  );
}
