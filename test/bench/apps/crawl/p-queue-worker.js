import { URL } from 'node:url';

const DIMENSIONS = 256;

export function extract({ url, html }) {
  const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, href]) => new URL(href, url).href);
  const title = /<title>(.*?)<\/title>/.exec(html)?.[1] ?? url;
  return { url, title, links, text: html.replace(/<[^>]+>/g, ' ') };
}

export function embed({ url, title, text }) {
  const vector = new Float32Array(DIMENSIONS);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    let hash = 0;
    for (let at = 0; at < word.length; at++) hash = (31 * hash + word.charCodeAt(at)) | 0;
    vector[Math.abs(hash) % DIMENSIONS]++;
  }
  const length = Math.hypot(...vector);
  return { url, title, vector: vector.map((value) => value / length) };
}
