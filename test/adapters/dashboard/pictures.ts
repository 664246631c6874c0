import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../../docs/images', import.meta.url));

/** Pictures are compared by the mean colours of squares of so many pixels. */
const SQUARE = 20;

/** A square differs when one of its colours does by more than this, of 255. */
const COLOUR_TOLERANCE = 32;

/** So large a part of the squares may differ. */
const SQUARES_TOLERANCE = 0.06;

interface Comparison {
  readonly isSameSize: boolean;
  readonly differing: number;
}

/**
 * Compares what a page shows with `docs/images/NAME.png`; `UPDATE_IMAGES=1` writes that picture anew. Fonts differ
 * between machines, and so does every letter; what stays is where there is text, a bar, a line or nothing, and in which
 * colour. So squares of twenty pixels are compared by their mean colours, and a few of them may differ. The browser
 * reads and shrinks both pictures itself.
 */
export async function expectPicture(page: Page, name: string): Promise<void> {
  const file = join(FOLDER, `${name}.png`);
  const picture = await page.screenshot();
  if (process.env['UPDATE_IMAGES'] === '1' || !existsSync(file)) {
    expect(process.env['CI'], `docs/images/${name}.png is missing`).toBeUndefined();
    writeFileSync(file, picture);
    return;
  }
  // In a page of its own: the policy of ours forbids it to read pictures of elsewhere.
  const judge = await page.context().newPage();
  const { isSameSize, differing } = await judge.evaluate<Comparison>(
    `(${compare.toString()})(${JSON.stringify([
      readFileSync(file).toString('base64'),
      picture.toString('base64'),
      SQUARE,
      COLOUR_TOLERANCE,
    ])})`,
  );
  await judge.close();
  if (isSameSize && differing <= SQUARES_TOLERANCE) return;
  const folder = join(tmpdir(), 'yardmaster-pictures');
  mkdirSync(folder, { recursive: true });
  const seen = join(folder, `${name}.png`);
  writeFileSync(seen, picture);
  expect.fail(
    `${name} looks otherwise: ${Math.round(100 * differing)} % of its squares differ. It is at ${seen}, and docs/images/${name}.png is what it was; UPDATE_IMAGES=1 takes the new one`,
  );
}

/** Runs in the browser. */
function compare(given: readonly [string, string, number, number]): Promise<unknown> {
  const [before, after, square, tolerance] = given;
  const { document, Image } = globalThis as unknown as Browserlike;
  const shrink = async (png: string): Promise<Shrunk> => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const [width, height] = [
      Math.round(image.width / square),
      Math.round(image.height / square),
    ] as const;
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, width, height);
    return { width, height, data: context.getImageData(0, 0, width, height).data };
  };
  return Promise.all([shrink(before), shrink(after)]).then(([a, b]) => {
    let differing = 0;
    const count = a.width * a.height;
    for (let k = 0; k < count; k++) {
      const distance = [0, 1, 2].map((c) =>
        Math.abs((a.data[4 * k + c] ?? 0) - (b.data[4 * k + c] ?? 0)),
      );
      if (Math.max(...distance) > tolerance) differing++;
    }
    const isSameSize = a.width === b.width && a.height === b.height;
    return { isSameSize, differing: differing / count };
  });
}

interface Shrunk {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray;
}

/** What of a browser is used; the tests have no types of the DOM. */
interface Browserlike {
  readonly Image: new () => {
    src: string;
    readonly width: number;
    readonly height: number;
    decode(): Promise<void>;
  };
  readonly document: {
    createElement(name: 'canvas'): {
      width: number;
      height: number;
      getContext(kind: '2d'): {
        imageSmoothingQuality: string;
        drawImage(image: object, x: number, y: number, width: number, height: number): void;
        getImageData(x: number, y: number, width: number, height: number): Shrunk;
      };
    };
  };
}
