import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const PUBLISHED = new URL('../../core/messages/messages.schema.json', import.meta.url);
const GENERATOR = '../../.config/message-schemas.mjs';

it('the published schemas of messages are those of their types (write them with UPDATE_SCHEMA=1)', async () => {
  const { messageSchemas } = (await import(GENERATOR)) as { messageSchemas: () => object };
  const text = `${JSON.stringify(messageSchemas(), undefined, 2)}\n`;
  if (process.env['UPDATE_SCHEMA'] === '1') writeFileSync(PUBLISHED, text);
  expect(readFileSync(PUBLISHED, 'utf8')).toBe(text);
});
