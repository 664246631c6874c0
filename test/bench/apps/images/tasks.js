import { defineTasks } from 'yardmaster';
import { clustersOf, hashOf, sheetOf, thumbnailOf } from './work.js';

export const tasks = defineTasks(import.meta.url, {
  thumbnail: thumbnailOf,
  hash: hashOf,
  clusters: clustersOf,
  sheet: sheetOf,
});
