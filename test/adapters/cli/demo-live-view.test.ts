import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';

import { startLiveView } from '../../../adapters/cli/demo/live-view.ts';

it('a line of text leaves every bar on the screen, also one that has not changed', async () => {
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 100 });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const stages = new Map([
    ['index', 10],
    ['answer', 2],
  ]);
  const view = startLiveView(stages, stream as unknown as NodeJS.WriteStream, () => undefined);
  view.done('index', 'worker-0');
  await expect.poll(() => written).toContain('answer');
  written = '';
  view.print('worker-0 was killed');
  await expect.poll(() => written).toMatch(/worker-0 was killed[^]*index[^]*answer/);
  view.stop();
});
