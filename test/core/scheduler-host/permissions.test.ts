import { expect, it } from 'vitest';

import { checkQuestion } from '../../../core/scheduler-host/sessions/permissions.ts';

const retire = (workers: unknown): object => ({
  command: 'amm.retireWorkers',
  parameters: { workers, close: false },
});

it('a worker may take itself out of service, and no other one', () => {
  checkQuestion('worker', 'command', retire(['tls://w:1']), 'tls://w:1');
  for (const workers of [['tls://w:2'], ['tls://w:1', 'tls://w:2'], [], undefined]) {
    expect(() => {
      checkQuestion('worker', 'command', retire(workers), 'tls://w:1');
    }).toThrow('the key of a worker does not permit');
  }
});

it('a client may not take workers out of service, and an admin may', () => {
  expect(() => {
    checkQuestion('client', 'command', retire(['c']), 'c');
  }).toThrow('the key of a client does not permit');
  checkQuestion('admin', 'command', retire(['tls://w:1']), 'c');
});
