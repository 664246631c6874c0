import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LoopDelay } from '../../../adapters/dashboard/process-figures.ts';

it('a delay before a rest is not that of the time after it', async () => {
  const delay = new LoopDelay();
  delay.start();
  await pause(50);
  const untilMs = performance.now() + 300;
  while (performance.now() < untilMs);
  await pause(50);
  delay.stop();
  delay.start();
  expect(delay.take(1)[0]).toBe(0);
  delay.stop();
});
