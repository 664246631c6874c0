import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport, transportConformance } from '../../../adapters/testing/index.ts';
import counting, { CountingTransport } from './example.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

describe('the example of docs/transports.md', () => {
  it('is the code that is tested here', () => {
    const code = read('./example.ts')
      .replace('../../../adapters/app/entries/transport.ts', 'yardmaster/transport')
      .replace('../../../adapters/testing/index.ts', 'yardmaster/testing');
    expect(read('../../../docs/transports.md')).toContain(`\`\`\`ts\n${code}\`\`\``);
  });

  it('counts what is sent', async () => {
    const clock = new VirtualClock();
    const transport = new CountingTransport(new InMemoryTransport(clock, { delayMs: 3 }));
    const deaf = { onMessages: () => undefined, onClose: () => undefined };
    const listener = await transport.listen('inmemory://a:0', () => deaf);
    const connecting = transport.connect(listener.address, () => deaf);
    await clock.advanceAsync(6);
    (await connecting).send({ op: 'one' }, { op: 'two' });
    expect(transport.sentCount).toBe(2);
  });
});

transportConformance(
  'the example of docs/transports.md',
  () => {
    const clock = new VirtualClock();
    return {
      transport: counting.create({ clock }, {}),
      listenAddress: 'inmemory://node:0',
      vacantAddress: 'inmemory://vacant',
      until: (holds) => clock.runUntil(holds),
    };
  },
  { describe, it },
);
