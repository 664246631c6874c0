/** What both programs do with pictures. */
import { Buffer } from 'node:buffer';
import sharp from 'sharp';

sharp.cache(false);
sharp.concurrency(1);

const THUMBNAIL = 200;
const COLUMNS = 5;
const SIMILAR_BITS = 6;

export async function thumbnailOf(path) {
  return sharp(path).resize(THUMBNAIL, THUMBNAIL, { fit: 'cover' }).jpeg().toBuffer();
}

/** One bit for each of 8 × 8 places: brighter than its neighbour? */
export async function hashOf(thumbnail) {
  const pixels = await sharp(thumbnail).greyscale().resize(9, 8, { fit: 'fill' }).raw().toBuffer();
  return Array.from({ length: 64 }, (_, at) => {
    const place = Math.floor(at / 8) * 9 + (at % 8);
    return pixels[place] > pixels[place + 1] ? 1 : 0;
  });
}

/** Groups of indices whose hashes are similar. */
export function clustersOf(hashes) {
  const clusters = [];
  for (const [index, hash] of hashes.entries()) {
    const near = clusters.find(([first]) => distance(hashes[first], hash) <= SIMILAR_BITS);
    if (near === undefined) clusters.push([index]);
    else near.push(index);
  }
  return clusters;
}

export async function sheetOf(thumbnails) {
  const height = Math.ceil(thumbnails.length / COLUMNS) * THUMBNAIL;
  const background = { r: 255, g: 255, b: 255 };
  return sharp({ create: { width: COLUMNS * THUMBNAIL, height, channels: 3, background } })
    .composite(
      thumbnails.map((input, at) => ({
        input: Buffer.from(input),
        left: (at % COLUMNS) * THUMBNAIL,
        top: Math.floor(at / COLUMNS) * THUMBNAIL,
      })),
    )
    .jpeg()
    .toBuffer();
}

function distance(one, other) {
  return one.reduce((count, bit, at) => count + (bit === other[at] ? 0 : 1), 0);
}
