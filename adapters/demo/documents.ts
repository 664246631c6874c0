import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { YardmasterError } from '../../core/api/index.ts';
import { textOf, wordsOf } from './fingerprint.ts';

/** Larger files are left out: they are data, not text. */
const FILE_BYTES_MAX = 512 * 1024;
const TEXT_FILE = /\.(?:md|txt|rst|html?|ts|js|mjs|cjs|json|yml|yaml|c|h|py|[1-9][a-z0-9]*)$/i;
const BARE_TEXT_FILE = /(?:^|\/)(?:readme|changelog|copyright|license|news|authors|todo)[^/]*$/i;

/** Text of this many bytes keeps one thread busy for some seconds. */
const TEXT_BYTES = 105 * 2 ** 20;
/** Manual pages and changelogs are packed to about a third. */
const UNPACKED = 3;

/** A text file. Its number is its index among all. */
export interface Document {
  readonly path: string;
  /** Estimated when the file is packed. */
  readonly textBytes: number;
}

/** The documents that are compared. */
export interface Corpus {
  readonly folder: string;
  readonly documents: readonly Document[];
  /** Files that were there before the limit. */
  readonly found: number;
}

/** Folders with readable text, best first. */
const USUAL_FOLDERS = ['/usr/share/man', '/usr/share/doc', 'node_modules'] as const;
/** A folder with less text is taken only when there is none with more. */
const USUAL_BYTES_MIN = TEXT_BYTES / 4;

/**
 * The text files of a folder, in the order of their names; beyond the limit evenly spread over all.
 * Always the same for the same files.
 *
 * @param folder - default: manual pages, other documentation, or installed packages
 * @param limit - number of files. Default: as many as have some seconds' worth of text
 * @throws YardmasterError `ERR_CONFIG` when there is no text
 */
export function findCorpus(folder?: string, limit?: number): Corpus {
  let best = { folder: '', found: [] as Document[], textBytes: 0 };
  for (const candidate of folder === undefined ? [...USUAL_FOLDERS, ownFolder()] : [folder]) {
    const found = textFilesIn(candidate);
    const textBytes = found.reduce((sum, document) => sum + document.textBytes, 0);
    if (textBytes > best.textBytes) best = { folder: candidate, found, textBytes };
    if (textBytes >= USUAL_BYTES_MIN) break;
  }
  const { found, textBytes } = best;
  if (found.length > 0) {
    const count = limit ?? Math.ceil(found.length * Math.min(1, TEXT_BYTES / textBytes));
    return { folder: best.folder, documents: spread(found, count), found: found.length };
  }
  throw new YardmasterError(
    'ERR_CONFIG',
    `there are no text files in ${folder ?? USUAL_FOLDERS.join(', ')}; name a folder with --path`,
    { path: folder },
  );
}

/** Reads all documents once, so that the system has them in memory. */
export function warm({ documents }: Corpus): void {
  for (const { path } of documents) {
    try {
      readFileSync(path);
    } catch {
      // It counts as empty.
    }
  }
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

/** With the packages that are installed next to this one. */
function ownFolder(): string {
  const own = dirname(createRequire(import.meta.url).resolve('yardmaster/package.json'));
  const parent = dirname(own);
  return basename(parent) === 'node_modules' ? parent : own;
}

function textFilesIn(folder: string): Document[] {
  const found: Document[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const entry of entriesOf(next)) {
      const path = join(next, entry.name);
      // Links lead to files that are found anyway, or out of the folder.
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) addText(found, path);
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // Not there, or not ours to read.
  }
}

function addText(found: Document[], path: string): void {
  const isPacked = path.endsWith('.gz');
  const bare = isPacked ? path.slice(0, -'.gz'.length) : path;
  if (!TEXT_FILE.test(bare) && !BARE_TEXT_FILE.test(bare)) return;
  const textBytes = sizeOf(path) * (isPacked ? UNPACKED : 1);
  if (textBytes <= FILE_BYTES_MAX) found.push({ path, textBytes });
}

/** Infinity: it is not there any more, or not ours to read. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return Infinity;
  }
}

function spread(documents: readonly Document[], limit: number): Document[] {
  if (documents.length <= limit) return [...documents];
  return Array.from(
    { length: limit },
    (_, index) => documents[Math.floor((index * documents.length) / limit)] as Document,
  );
}
