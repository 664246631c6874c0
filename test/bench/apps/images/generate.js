/** Photographs of a kind: `count` pictures in folder, of which several look alike. The same each time. */
import { Buffer } from 'node:buffer';
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';

const WIDTH = 1600;
const HEIGHT = 1200;
const KINDS = 12;

export async function generate(folder, count) {
  await mkdir(folder, { recursive: true });
  const paths = Array.from({ length: count }, (_, index) => join(folder, `${index}.jpg`));
  for (const [index, path] of paths.entries()) {
    if (existsSync(path)) continue;
    await sharp(Buffer.from(drawing(index)))
      .jpeg()
      .toFile(`${path}.tmp`);
    await rename(`${path}.tmp`, path);
  }
  return paths;
}

/** Circles at places that the kind decides, in colours that the picture decides. */
function drawing(index) {
  const kind = index % KINDS;
  const circles = Array.from({ length: 12 }, (_, at) => {
    const x = (kind * 977 + at * 631) % WIDTH;
    const y = (kind * 613 + at * 389) % HEIGHT;
    const colour = `hsl(${(index * 37 + at * 30) % 360} 70% ${at % 2 === 0 ? 30 : 80}%)`;
    return `<circle cx="${x}" cy="${y}" r="${100 + ((kind * at * 41) % 200)}" fill="${colour}"/>`;
  });
  return `<svg width="${WIDTH}" height="${HEIGHT}" xmlns="http://www.w3.org/2000/svg">
    <rect width="100%" height="100%" fill="#888"/>${circles.join('')}</svg>`;
}
