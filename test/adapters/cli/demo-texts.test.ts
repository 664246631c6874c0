import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { findCorpus, readWords } from '../../../adapters/demo/documents.ts';
import { fingerprintOf, stripRoff, textOf } from '../../../adapters/demo/fingerprint.ts';
import { demoGraph } from '../../../adapters/demo/graph.ts';
import {
  BAND_COUNT,
  findFamilies,
  type Fingerprints,
  joinFingerprints,
  linkDocuments,
  singlePass,
} from '../../../adapters/demo/near-duplicates.ts';
import { PASTE, slownessLines } from '../../../adapters/cli/demo-run.ts';
import { ROOT } from '../../tidy/source-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-demo-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const PAGE = `.\\" a comment about zebras
.TH LS 1 "2024" "coreutils"
.SH NAME
ls \\- list directory \\fBcontents\\fP
.PP
List \\fIfiles\\fR\\&.
.nr hidden 5
`;

/** The second and third repeat the first but for a few words, and the last the fourth. */
function textsWithCopies(): string[] {
  const text = (start: number): string =>
    Array.from({ length: 1000 }, (_, at) => `word${(start + at * at) % 997}`).join(' ');
  return [text(0), `a title ${text(0)}`, `${text(0)} an end`, text(331), text(613), text(331)];
}

describe('the demo', () => {
  test('reads manual pages without their markup', () => {
    const words = stripRoff(PAGE).match(/\w+/g);
    expect(words).toEqual([
      'LS', '1', '2024', 'coreutils', 'NAME', 'ls', 'list', 'directory', 'contents', 'List', 'files',
    ]); // prettier-ignore
  });

  test('reads packed files, and takes a damaged one for empty', () => {
    expect(textOf('a.txt.gz', gzipSync('plain text'))).toBe('plain text');
    expect(textOf('a.txt.gz', Buffer.from('not packed'))).toBe('');
  });

  test('gives texts fingerprints that agree in as many places as they have phrases in common', () => {
    const words = Array.from({ length: 2000 }, (_, at) => `word${(at * at) % 1999}`);
    const one = fingerprintOf(words)!;
    expect(fingerprintOf(words)).toEqual(one);
    for (const changed of [0, 100, 400, 2000]) {
      // The words of the first part are new ones; all phrases of the rest stay.
      const other = fingerprintOf(words.map((word, at) => (at < changed ? `new${at}` : word)))!;
      const agreeing = one.filter((byte, at) => byte === other[at]).length / one.length;
      const common = (2000 - changed) / (2000 + changed);
      expect(Math.abs(agreeing - common)).toBeLessThan(0.1);
    }
  });

  test('gives texts that are too short to be compared no fingerprint', () => {
    expect(fingerprintOf(['the', 'same', 'few', 'words'])).toBeUndefined();
  });

  test('finds the same families however the documents and the bands are cut', () => {
    const parts = textsWithCopies().map((text, number): Fingerprints => ({
      documents: Uint32Array.of(number),
      bytes: fingerprintOf(text.split(' '))!,
    }));
    const all = joinFingerprints(parts);
    const whole = findFamilies([linkDocuments(all, { first: 0, count: BAND_COUNT })], all);
    expect(whole.families.map(({ documents }) => documents)).toEqual([
      [0, 1, 2],
      [3, 5],
    ]);
    expect(whole.compared).toBe(6);
    const again = joinFingerprints([
      joinFingerprints(parts.slice(0, 4)),
      joinFingerprints(parts.slice(4)),
    ]);
    const links = Array.from({ length: BAND_COUNT }, (_, first) =>
      linkDocuments(again, { first, count: 1 }),
    );
    expect(findFamilies(links, again)).toEqual(whole);
  });

  test('finds in one thread what its fingerprints say, and nothing in texts that differ', () => {
    const texts = mkdtempSync(join(folder, 'texts-'));
    textsWithCopies().forEach((text, number) => {
      writeFileSync(join(texts, `text${number}.txt`), text);
    });
    const { documents } = findCorpus(texts);
    const found = singlePass(documents);
    expect(found.families.map((family) => family.documents)).toEqual([
      [0, 1, 2],
      [3, 5],
    ]);
    expect(found.families[1]!.similarity).toBe(1);
    expect(found.digest).not.toBe(singlePass(documents.slice(1)).digest);
    expect(singlePass([documents[0]!, documents[4]!]).families).toEqual([]);
  });

  test('cuts little text into many tasks, and each file is read by one of them', () => {
    const documents = Array.from({ length: 1000 }, (_, at) => ({
      path: `file${at}.txt`,
      textBytes: 10 + (at % 90),
    }));
    const { graph, stages } = demoGraph(documents);
    expect(stages.get('fingerprint')).toBeGreaterThan(50);
    const paths = Object.values(graph).flatMap(({ args: [first] }) =>
      Array.isArray(first) ? first.filter((path) => typeof path === 'string') : [],
    );
    expect(paths).toEqual(documents.map(({ path }) => path));
  });

  test('spreads a limited number of files over all of them, always the same ones', () => {
    const four = mkdtempSync(join(folder, 'four-'));
    for (let at = 0; at < 4; at++) writeFileSync(join(four, `doc${at}.txt`), 'text');
    const first = findCorpus(four, 2);
    expect(first.documents.map(({ path }) => path.slice(-8))).toEqual(['doc0.txt', 'doc2.txt']);
    expect(findCorpus(four, 2)).toEqual(first);
    expect(first.found).toBe(4);
    expect(readWords(first.documents[0]!.path)).toEqual(['text']);
  });

  test('gives a program to paste that runs as it stands', async () => {
    const own = mkdtempSync(join(ROOT, 'dist', 'pasted-'));
    try {
      expect(PASTE.split('\n')).toHaveLength(10);
      expect(Math.max(...PASTE.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
      writeFileSync(join(own, 'squares.mjs'), PASTE);
      const { stdout } = await promisify(execFile)('node', ['squares.mjs'], { cwd: own });
      expect(stdout).toBe('14\n');
      expect(existsSync(join(own, 'report.html'))).toBe(true);
    } finally {
      rmSync(own, { recursive: true });
    }
  });

  test('says with the measured load why two workers were not faster, and nothing otherwise', () => {
    expect(slownessLines(1.8, 2, 1.5, 2)).toEqual([]);
    expect(slownessLines(1.2, 2, 0.1, 2)).toEqual([]);
    expect(slownessLines(0.8, 1, 1.5, 2)).toEqual([]);
    expect(slownessLines(0.8, 2, 1.26, 2)[0]).toBe(
      'Load       your machine was busy: other programs used 1.3 of 2 processors,',
    );
    expect(slownessLines(0.8, 2, 0, 1)).toEqual([
      '           There is one processor, which the workers shared.',
    ]);
  });

  test('says so when there is no text', () => {
    expect(() => findCorpus(join(folder, 'nowhere'))).toThrow(
      expect.objectContaining({ code: 'ERR_CONFIG' }),
    );
  });
});
