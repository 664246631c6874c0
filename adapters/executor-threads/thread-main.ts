/** What a thread of the pool runs. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import type { TaskSlot } from '../../core/api/index.ts';
import { collectGarbage, threadBytes } from '../memory/index.ts';
import { runTask } from '../tasks/index.ts';
import {
  forSharing,
  type FromThread,
  type ThreadData,
  threadNowMs,
  type ToThread,
} from './messages.ts';
import { surroundingsOfThread } from './surroundings.ts';

const port = parentPort;
if (port === null) throw new Error('thread-main.js runs in a worker thread, not by itself');

let current: AbortController | undefined;
/** Those of the present task that wait for a place. */
let rejoins: (() => void)[] = [];

const slot: TaskSlot = {
  secede: () => post({ op: 'secede', memoryBytes: threadBytes() }),
  rejoin: () =>
    new Promise((resolve) => {
      rejoins.push(resolve);
      post({ op: 'rejoin', memoryBytes: threadBytes() });
    }),
};

const surroundings = surroundingsOfThread(workerData as ThreadData, (request) => {
  post({ op: 'connect', ...request, memoryBytes: threadBytes() }, [request.port]);
});

function post(message: FromThread, moved: (ArrayBuffer | MessagePort)[] = []): void {
  port?.postMessage(message, moved);
}

async function run({ key, runSpec, inputs }: Extract<ToThread, { op: 'run' }>): Promise<void> {
  const controller = new AbortController();
  current = controller;
  rejoins = [];
  const task = { key, runSpec, inputs: new Map(inputs) };
  const { signal } = controller;
  const result = await runTask(task, { signal, nowMs: threadNowMs, slot, surroundings });
  if (current === controller) current = undefined;
  if (result.kind !== 'success') {
    post({ op: 'done', result, memoryBytes: threadBytes() });
    return;
  }
  const moved: ArrayBuffer[] = [];
  const value = forSharing(result.value, moved);
  post({ op: 'done', result: { ...result, value }, memoryBytes: threadBytes() }, moved);
}

port.on('message', (message: ToThread) => {
  if (message.op === 'run') void run(message);
  else if (message.op === 'abort') current?.abort();
  else if (message.op === 'rejoined') for (const resolve of rejoins.splice(0)) resolve();
  else {
    collectGarbage();
    post({ op: 'collected', memoryBytes: threadBytes() });
  }
});
post({ op: 'ready', memoryBytes: threadBytes() });
