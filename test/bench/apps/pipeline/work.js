/** What both programs do with documents. */
import { readFile } from 'node:fs/promises';

const WORDS_OF_CHUNK = 200;
const DIMENSIONS = 128;

/** The time of change is an argument because the text depends on it. */
export async function extract(path, changedMs) {
  const html = await readFile(path, 'utf8');
  const title = /<title>(.*?)<\/title>/.exec(html)?.[1];
  if (title === undefined) throw new Error(`${path} has no title`);
  const text = html
    .replace(/<(style|script)[^>]*>.*?<\/\1>/gs, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&amp;/g, '&');
  const words = text.split(/\s+/).filter((word) => word !== '');
  const chunks = [];
  for (let at = 0; at < words.length; at += WORDS_OF_CHUNK)
    chunks.push(words.slice(at, at + WORDS_OF_CHUNK).join(' '));
  return { title, changedMs, chunks };
}

/** Stands for a model: a vector of length 1 for each chunk, one after the other. */
export function embed({ chunks }) {
  const vectors = new Float32Array(chunks.length * DIMENSIONS);
  for (const [index, chunk] of chunks.entries()) vectors.set(vectorOf(chunk), index * DIMENSIONS);
  return vectors;
}

/** The document of which a chunk is nearest to the question. */
export function nearest(question, documents) {
  const wanted = vectorOf(question);
  let best = -1;
  let bestNearness = -Infinity;
  for (const [index, vectors] of documents.entries()) {
    for (let at = 0; at < vectors.length; at += DIMENSIONS) {
      let nearness = 0;
      for (let k = 0; k < DIMENSIONS; k++) nearness += vectors[at + k] * wanted[k];
      if (nearness > bestNearness) [best, bestNearness] = [index, nearness];
    }
  }
  return best;
}

/** Counts groups of three letters, and mixes the counts by layers of fixed weights. */
function vectorOf(text) {
  const counts = new Float32Array(DIMENSIONS);
  for (let at = 0; at + 3 <= text.length; at++) {
    const hash =
      text.charCodeAt(at) * 31 * 31 + text.charCodeAt(at + 1) * 31 + text.charCodeAt(at + 2);
    counts[hash % DIMENSIONS]++;
  }
  let values = counts;
  for (const weights of LAYERS) {
    const next = new Float32Array(DIMENSIONS);
    for (let row = 0; row < DIMENSIONS; row++) {
      let sum = 0;
      for (let k = 0; k < DIMENSIONS; k++) sum += weights[row * DIMENSIONS + k] * values[k];
      next[row] = Math.tanh(sum);
    }
    values = next;
  }
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

const LAYERS = Array.from({ length: 24 }, (_, layer) =>
  Float32Array.from({ length: DIMENSIONS * DIMENSIONS }, (_, at) => Math.sin((layer + 1) * at) / 8),
);
