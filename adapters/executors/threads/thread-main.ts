/** The program of a thread of the pool. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';

import { inBackground } from '../../../core/shared/timers.ts';
import { valueBytes } from '../../../core/util/bytes.ts';
import type { ExecutionResult } from '../../../core/api/index.ts';
import { epochMs } from '../../clocks/system-clock.ts';
import { threadBytes } from '../collect-garbage.ts';
import { ActorHost, callingRun, describeFailure, runTask, startTask } from '../../tasks/index.ts';
import { StartedRuns } from './task-thread.ts';
import { type NumberedTask, ResultWriter, RunReader } from './run-queue.ts';
import {
  forSharing,
  type FromThread,
  postedResult,
  type PostedRuns,
  type PostedTask,
  receivedCall,
  receivedTask,
  type ThreadData,
  type ToThread,
} from './messages.ts';
import { surroundingsOfThread } from './spawn.ts';
import { IdleCollector } from './thread-pool.ts';
import { type RunOwner, ThreadRun } from './thread-run.ts';

const port = parentPort;
if (port === null) throw new Error('thread-main.js runs in a worker thread, not by itself');

/** Outcomes are sent before a run begins if the last ones were sent at least this long ago. */
const RESULTS_WAIT_MS = 1;
/** Interval in milliseconds at which a long queue lets messages and timers be handled. */
const BREATH_MS = 5;
/** The same while runs are parked, which cannot continue before. */
const BREATH_PARKED_MS = 1;

const begun = new StartedRuns((workerData as ThreadData).begun);
const reader = new RunReader();
const results = new ResultWriter();
const moved: ArrayBuffer[] = [];
let line: NumberedTask[] = [];
let isRunning = false;
let sentMs = 0;
let isSendDue = false;
/** The run that computes, or has computed last. */
let present: ThreadRun | undefined;
/** Runs that have not ended, by number, without those that never wait. */
const open = new Map<number, ThreadRun>();
/** Those of them that let the next run begin. */
let parkedCount = 0;

const surroundings = surroundingsOfThread(workerData as ThreadData, (request) => {
  post({ op: 'connect', ...request, memoryBytes: threadBytes() }, [request.port]);
});

const tidier = new IdleCollector((workerData as ThreadData).tidyBytes ?? Infinity);
/** The bytes that the runs since the last look have left behind: copies of inputs, values, and their bytes. */
let leftBytes = 0;

const postMessage = port.postMessage.bind(port);

// Tasks and what they import find the same port. What they post is not for the pool, and a closed port would end the thread.
port.postMessage = warnOfPort;
port.close = warnOfPort;

let hasWarned = false;

function warnOfPort(): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    'a task uses the parent port of its thread, where nobody listens; it shall return a value instead',
  );
}

function post(message: FromThread, transferred: (ArrayBuffer | MessagePort)[] = []): void {
  postMessage(message, transferred);
}

const actors = new ActorHost(epochMs, surroundings);

const owner: RunOwner = {
  surroundings,
  slotChanged: ({ number }, op) => {
    sendResults();
    post({ op, number, memoryBytes: threadBytes() });
  },
};

/** Runs all queued tasks. Waits only for tasks that return a promise, until they end or are parked. */
async function runLine(): Promise<void> {
  isRunning = true;
  let breathMs = performance.now();
  while (line.length > 0) {
    // Those that have run shall be garbage.
    const runs = line.reverse();
    line = [];
    for (let run = runs.pop(); run !== undefined; run = runs.pop()) {
      const nowMs = performance.now();
      if (nowMs - sentMs > RESULTS_WAIT_MS) sendResults();
      if (nowMs - breathMs > (parkedCount > 0 ? BREATH_PARKED_MS : BREATH_MS)) {
        await breathe();
        breathMs = performance.now();
      }
      if (!begun.claim(run.number)) continue;
      present = new ThreadRun(run.number, owner);
      const result = startTask(run, present);
      if (result instanceof Promise) await endOrPark(run, present, result);
      else addResult(run, result);
    }
  }
  sendResults();
  isRunning = false;
  tidy();
}

async function breathe(): Promise<void> {
  sendResults();
  await new Promise((resolve) => setImmediate(resolve));
  tidy();
}

function tidy(): void {
  const nbytes = leftBytes;
  leftBytes = 0;
  tidier.taskEnded(nbytes);
}

/** Sends the outcomes of ended runs while a task waits. Resolves when the next run may begin. */
function endOrPark(
  task: NumberedTask,
  run: ThreadRun,
  result: Promise<ExecutionResult>,
): Promise<void> {
  sendResults();
  open.set(run.number, run);
  return new Promise((resolve) => {
    let wasParked = run.isParked;
    const onParked = (): void => {
      if (!wasParked) parkedCount++;
      wasParked = true;
      resolve();
    };
    run.onParked = onParked;
    if (wasParked) {
      parkedCount++;
      resolve();
    }
    const ended = result.then((outcome) => {
      open.delete(run.number);
      addResult(task, outcome);
      if (wasParked) {
        parkedCount--;
        sendResults();
        tidy();
      } else resolve();
    });
    inBackground(ended, crash);
  });
}

function addResult({ number, inputs }: NumberedTask, result: ExecutionResult): void {
  for (const input of inputs.values()) leftBytes += valueBytes(input);
  if (result.kind === 'success') {
    leftBytes += 2 * valueBytes(result.value);
    results.add(number, { ...result, value: forSharing(result.value, moved) });
  } else results.add(number, result);
}

function sendResults(): void {
  sentMs = performance.now();
  if (results.isEmpty) return;
  post({ op: 'done', ...results.take(), memoryBytes: threadBytes() }, moved.splice(0));
}

function abort(number: number): void {
  const run = open.get(number) ?? (present?.number === number ? present : undefined);
  run?.abort();
}

function enqueue(posted: PostedRuns): void {
  line.push(...reader.read(posted));
  if (!isRunning) inBackground(runLine().then(tidy), crash);
}

/** Runs a task beside those in the line. */
function begin(posted: PostedTask & { readonly number: number }): void {
  const { number } = posted;
  const run = new ThreadRun(number, owner, true);
  const task = { number, ...receivedTask(posted) };
  open.set(number, run);
  parkedCount++;
  const ended = runTask(task, run).then((outcome) => {
    open.delete(number);
    parkedCount--;
    addResult(task, outcome);
    sendSoon();
  });
  inBackground(ended, crash);
}

/** Outcomes of runs that end in one turn are sent together. */
function sendSoon(): void {
  if (isSendDue) return;
  isSendDue = true;
  setImmediate(() => {
    isSendDue = false;
    sendResults();
    tidy();
  });
}

function runAside(posted: PostedTask): Promise<ExecutionResult> {
  const { signal } = new AbortController();
  return runTask(receivedTask(posted), { signal, nowMs: epochMs, surroundings });
}

/** Throws outside of any promise, so that the thread ends and its owner receives the error. */
function crash(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

/** A result that cannot be posted is a failure, so that the caller does not wait for ever. */
function answer(id: number, answering: Promise<ExecutionResult>): void {
  inBackground(
    answering.then((result) => postAnswer(id, result)),
    (error) => postAnswer(id, { kind: 'failure', error: describeFailure(error) }),
  );
}

function postAnswer(id: number, result: ExecutionResult): void {
  const shared: ArrayBuffer[] = [];
  const posted =
    result.kind === 'success' ? { ...result, value: forSharing(result.value, shared) } : result;
  post({ op: 'answered', id, result: postedResult(posted), memoryBytes: threadBytes() }, shared);
}

function handle(message: ToThread): void {
  switch (message.op) {
    case 'run':
      return enqueue(message);
    case 'begin':
      return begin(message);
    case 'make-actor':
      answer(message.id, actors.make({ ...receivedTask(message), actorAt: message.actorAt }));
      return;
    case 'run-aside':
      answer(message.id, runAside(message));
      return;
    case 'call-actor':
      answer(message.id, actors.call(receivedCall(message.call)));
      return;
    case 'release-actor':
      actors.release(message.key);
      return;
    case 'abort':
      return abort(message.number);
    case 'rejoined':
      open.get(message.number)?.rejoined();
      return;
    case 'resumed':
      open.get(message.number)?.resumed();
      return;
    case 'are-you-turning':
      post({ op: 'turning', number: message.number, memoryBytes: threadBytes() });
      return;
    case 'collect':
      tidier.collect();
      post({ op: 'collected', memoryBytes: threadBytes() });
  }
}

/** The thread ends because of what calls this. */
function blameCaller(): void {
  const run = callingRun();
  if (run instanceof ThreadRun) begun.blame(run.number);
}

process.on('exit', blameCaller);
process.on('uncaughtExceptionMonitor', blameCaller);
port.on('message', handle);
post({ op: 'ready', memoryBytes: threadBytes() });
