/**
 * Plays the stories of `golden/`: the recorded behaviour of Dask's scheduler, written down by hand.
 * With `YARDMASTER_UPDATE_STORIES=1` what comes out is written into them; read the difference.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { formatStory, parseStory, Stage } from './script.ts';

const folder = fileURLToPath(new URL('golden/', import.meta.url));
const files = readdirSync(folder).filter((file) => file.endsWith('.txt'));

it.each(files)('%s is what happens', (file) => {
  const text = readFileSync(folder + file, 'utf8');
  const scenes = parseStory(text);
  const stage = new Stage();
  const played = scenes.map((scene) => ({ ...scene, expected: stage.play(scene.command) }));
  if (process.env['YARDMASTER_UPDATE_STORIES'] === '1') {
    writeFileSync(folder + file, formatStory(played));
    return;
  }
  expect(formatStory(played)).toBe(formatStory(scenes));
});

it('a story that says something else is noticed', () => {
  const [scene] = parseStory('worker w1\n----\nw1 < compute-task a\n');
  expect(new Stage().play(scene!.command)).not.toEqual(scene!.expected);
});

it('a story is written as it was read', () => {
  const text = readFileSync(folder + files[0]!, 'utf8');
  expect(formatStory(parseStory(text))).toBe(text);
});
