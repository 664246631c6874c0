import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { findCorpus, readWords } from '../../../adapters/demo/documents.ts';
import {
  digestOf,
  entriesOf,
  indexDocuments,
  mergeParts,
  rangeOfTerm,
} from '../../../adapters/demo/inverted-index.ts';
import { bestDocuments, scoreWords, tellingTerms } from '../../../adapters/demo/ranking.ts';
import { singlePass } from '../../../adapters/demo/single-pass.ts';
import { PASTE } from '../../../adapters/cli/demo/take-away.ts';
import { ROOT } from '../../tidy/source-files.ts';
import { stripRoff, textOf } from '../../../adapters/demo/text.ts';

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

  test('comes to the same index however the documents are cut and merged', () => {
    const documents = ['the cat sat on the mat', 'the dog sat', 'cat and dog and cat', 'zoo'].map(
      (text, index) => [index, text.split(' ')] as const,
    );
    const whole = indexDocuments(documents);
    const left = mergeParts([indexDocuments([documents[0]!]), indexDocuments([documents[1]!])]);
    const right = mergeParts(documents.slice(2).map((document) => indexDocuments([document])));
    const merged = mergeParts([left, right]);
    expect(digestOf(entriesOf(merged))).toBe(digestOf(entriesOf(whole)));
    expect([...entriesOf(merged)].find(([term]) => term === 'cat')?.[1]).toEqual({
      documents: Uint32Array.of(0, 2),
      counts: Uint32Array.of(1, 2),
    });
    const terms = [...entriesOf(whole)].map(([term]) => term);
    for (const of of [1, 2, 3, 26]) {
      const ranges = Array.from({ length: of }, (_, index) =>
        mergeParts([left, right], { index, of }),
      );
      expect(ranges.flatMap((part) => [...entriesOf(part)].map(([term]) => term))).toEqual(terms);
      ranges.forEach((part, index) => {
        const expected = [...entriesOf(whole)].filter(([term]) => rangeOfTerm(term, of) === index);
        expect(digestOf(entriesOf(part))).toBe(digestOf(expected));
        // What a range leaves out takes no memory.
        expect(part.documents.length).toBe(part.offsets.at(-1));
      });
    }
  });

  test('ranks documents and terms as a plain pass over the files does', () => {
    const texts = ['sorting lists quickly', 'lists of lists', 'quick brown fox', 'sorting sorting'];
    texts.forEach((text, index) => {
      writeFileSync(join(folder, `doc${index}.txt`), text);
    });
    const { paths } = findCorpus(folder, 100);
    const question = {
      words: ['lists', 'sorting'],
      documentCount: paths.length,
      documentLimit: 3,
      termLimit: 3,
    };
    const plain = singlePass(paths, question, 2);
    const part = indexDocuments(paths.map((path, index) => [index, readWords(path)] as const));
    const documents = bestDocuments(scoreWords(entriesOf(part), question.words, 4), 3);
    const numbers = documents.map(({ item }) => item);
    expect(plain.answer.documents).toEqual(documents);
    expect(plain.answer.terms).toEqual(tellingTerms(entriesOf(part), numbers, 4, 3));
    expect(documents.map(({ item }) => item)).toEqual([0, 1, 3]);
  });

  test('spreads a limited number of files over all of them, always the same ones', () => {
    const first = findCorpus(folder, 2);
    expect(first.paths.map((path) => path.slice(-8))).toEqual(['doc0.txt', 'doc2.txt']);
    expect(findCorpus(folder, 2)).toEqual(first);
    expect(first.found).toBe(4);
  });

  test('takes words that stand in every text for no characteristic terms', () => {
    const texts = ['the harbour and the crane', 'the crane', 'and then the fog'];
    const part = indexDocuments(texts.map((text, index) => [index, text.split(' ')] as const));
    const terms = tellingTerms(entriesOf(part), [0, 1], 3, 10).map(({ item }) => item);
    expect(terms).toEqual(['harbour', 'crane']);
  });

  test('gives a program to paste that runs as it stands', async () => {
    const own = mkdtempSync(join(ROOT, 'dist', 'pasted-'));
    try {
      expect(PASTE.split('\n')).toHaveLength(10);
      writeFileSync(join(own, 'squares.mjs'), PASTE);
      const { stdout } = await promisify(execFile)('node', ['squares.mjs'], { cwd: own });
      expect(stdout).toBe('30\n');
      expect(existsSync(join(own, 'report.html'))).toBe(true);
    } finally {
      rmSync(own, { recursive: true });
    }
  });

  test('says so when there is nothing to index', () => {
    expect(() => findCorpus(join(folder, 'nowhere'), 10)).toThrow(
      expect.objectContaining({ code: 'ERR_CONFIG' }),
    );
  });
});
