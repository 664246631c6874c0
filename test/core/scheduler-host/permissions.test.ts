import { expect, it } from 'vitest';

import { checkQuestion } from '../../../core/scheduler-host/permissions.ts';

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

it.each([
  ['broadcast', { method: 'run', parameters: {} }],
  ['proxy', { worker: 'tls://w:2', method: 'run' }],
  ['reserve-data', { keys: [], fingerprints: [] }],
  ['coordination.setVariable', { name: 'x' }],
  ['report.start', {}],
])('a worker cannot act as a client by the command "%s"', (command, parameters) => {
  expect(() => {
    checkQuestion('worker', 'command', { command, parameters }, 'tls://w:1');
  }).toThrow('the key of a worker does not permit');
  checkQuestion('client', 'command', { command, parameters }, 'c');
});

it('a worker cannot read the results of clients through the scheduler', () => {
  for (const method of ['gather', 'get-part', 'who-has', 'register-client']) {
    expect(() => {
      checkQuestion('worker', method, {}, 'tls://w:1');
    }).toThrow('the key of a worker does not permit');
  }
});

it.each(['dashboard.url', 'dask.dashboard', 'work-stealing.stop', 'amm.stop', 'restart'])(
  'a client cannot operate the cluster by the command "%s"',
  (command) => {
    expect(() => {
      checkQuestion('client', 'command', { command }, 'c');
    }).toThrow('the key of a client does not permit');
    checkQuestion('admin', 'command', { command }, 'c');
  },
);

it.each(['start-recording', 'stop-recording'])(
  'only an admin may make the scheduler write files by the command "%s"',
  (command) => {
    for (const role of ['client', 'worker', 'viewer'] as const) {
      expect(() => {
        checkQuestion(role, 'command', { command }, 'c');
      }).toThrow(`the key of a ${role} does not permit`);
    }
    checkQuestion('admin', 'command', { command }, 'c');
  },
);
