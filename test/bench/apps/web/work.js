/** What both services compute. */
import { createHash } from 'node:crypto';

export function digest({ text, rounds }) {
  let found = text;
  for (let round = 0; round < rounds; round++) {
    found = createHash('sha256').update(found).digest('hex');
  }
  return { digest: found };
}
