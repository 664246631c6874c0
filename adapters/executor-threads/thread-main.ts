/** What a thread of the pool runs. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import type { ExecutionResult, TaskSlot } from '../../core/api/index.ts';
import { threadBytes } from '../memory/index.ts';
import { ActorHost, runTask } from '../tasks/index.ts';
import {
  forSharing,
  type FromThread,
  type ThreadData,
  threadNowMs,
  type ToThread,
} from './messages.ts';
import { surroundingsOfThread } from './surroundings.ts';
import { Tidier } from './tidier.ts';

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

const tidier = new Tidier((workerData as ThreadData).tidyBytes ?? Infinity);

function post(message: FromThread, moved: (ArrayBuffer | MessagePort)[] = []): void {
  port?.postMessage(message, moved);
}

const actors = new ActorHost(threadNowMs, surroundings);

async function answer(id: number, answering: Promise<ExecutionResult>): Promise<void> {
  const { result, moved } = forPosting(await answering);
  post({ op: 'answered', id, result, memoryBytes: threadBytes() }, moved);
}

/** @returns bytes that it leaves behind: copies of inputs, the value itself, and its bytes */
async function run({ key, runSpec, inputs }: Extract<ToThread, { op: 'run' }>): Promise<number> {
  const controller = new AbortController();
  current = controller;
  rejoins = [];
  const task = { key, runSpec, inputs: new Map(inputs) };
  const { signal } = controller;
  const result = await runTask(task, { signal, nowMs: threadNowMs, slot, surroundings });
  if (current === controller) current = undefined;
  const posted = forPosting(result);
  post({ op: 'done', result: posted.result, memoryBytes: threadBytes() }, posted.moved);
  let leftBytes = result.kind === 'success' ? 2 * result.value.byteLength : 0;
  for (const [, input] of inputs) leftBytes += input.byteLength;
  return leftBytes;
}

function forPosting(result: ExecutionResult): { result: ExecutionResult; moved: ArrayBuffer[] } {
  const moved: ArrayBuffer[] = [];
  if (result.kind !== 'success') return { result, moved };
  return { result: { ...result, value: forSharing(result.value, moved) }, moved };
}

function handle(message: ToThread): void {
  switch (message.op) {
    case 'run':
      void run(message).then((leftBytes) => tidier.taskEnded(leftBytes));
      return;
    case 'make-actor':
      void answer(message.id, actors.make({ ...message, inputs: new Map(message.inputs) }));
      return;
    case 'call-actor':
      void answer(message.id, actors.call(message.call));
      return;
    case 'release-actor':
      actors.release(message.key);
      return;
    case 'abort':
      current?.abort();
      return;
    case 'rejoined':
      for (const resolve of rejoins.splice(0)) resolve();
      return;
    case 'collect':
      tidier.collect();
      post({ op: 'collected', memoryBytes: threadBytes() });
  }
}

port.on('message', handle);
post({ op: 'ready', memoryBytes: threadBytes() });
