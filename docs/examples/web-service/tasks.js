import { createHash } from 'node:crypto';
import { defineTasks } from 'yardmaster';

export const { digest } = defineTasks(import.meta.url, {
  /** Hashes a text so often; it stands for a template, a picture, or whatever computes. */
  digest(text, rounds) {
    let found = text;
    for (let round = 0; round < rounds; round++) {
      found = createHash('sha256').update(found).digest('hex');
    }
    return found;
  },
});
