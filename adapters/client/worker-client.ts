import { YardmasterError } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { comeBack } from '../../core/shared/reconnect.ts';
import { currentRun, type RunContext, type TaskSurroundings } from '../tasks/index.ts';
import { Client } from './client.ts';
import { pauseOf } from '../peers/peers.ts';
import { Session } from './session.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A client whose connection breaks while the scheduler lives has most likely lost its worker, and wants its results in vain. */
const RETURN_WITHIN_MS = 1000;
const LEFT_BADLY = 'the client of a task could not leave what it shared';

/** Connections that no task uses at present, by the thread that they belong to. */
const idle = new WeakMap<TaskSurroundings, Session[]>();

/**
 * The client of the task that calls: it submits further tasks, waits for them, gathers. Its tasks
 * run before those that were submitted after the task itself.
 *
 * While the task waits for the cluster through this client, it gives its thread to another task,
 * and gets a thread back before it continues. So tasks that wait for their own subtasks do not
 * block each other. When the task ends, or is cancelled, all futures of the client are released.
 *
 * When the scheduler is gone, the client waits for it as the worker does (`onSchedulerLost`).
 *
 * @throws YardmasterError `ERR_TASK` outside of a task, or when its worker serves no cluster;
 *   `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_CANCELLED` when the task is cancelled
 */
export function workerClient(): Promise<Client> {
  const run = currentRun('workerClient()');
  run.client ??= lend(run);
  return run.client as Promise<Client>;
}

async function lend(run: RunContext): Promise<Client> {
  const { surroundings, signal } = run;
  if (surroundings === undefined) {
    throw new YardmasterError(
      'ERR_TASK',
      `"${run.key}" asked for a client, but what runs it knows of no cluster`,
      { key: run.key },
    );
  }
  const ended = new AbortController();
  run.onEnd = () => ended.abort();
  const session = await takeSession(surroundings, AbortSignal.any([ended.signal, signal]));
  if (ended.signal.aborted || signal.aborted) {
    putBack(surroundings, session);
    const message = `"${run.key}" ended before it had its client`;
    throw new YardmasterError('ERR_CANCELLED', message, { key: run.key });
  }
  session.submittingTask = run.key;
  session.pause = pauseOf(run);
  // Rejects what the task waits for and cancels what it has submitted.
  const onAbort = (): void => closeSession(session);
  signal.addEventListener('abort', onAbort, { once: true });
  run.onEnd = () => {
    signal.removeEventListener('abort', onAbort);
    putBack(surroundings, session);
  };
  return Client.over(session, surroundings.resultStore);
}

/** @param signal - ends the attempts to reach a scheduler that is gone */
async function takeSession(surroundings: TaskSurroundings, signal: AbortSignal): Promise<Session> {
  const known = poolOf(surroundings).pop();
  if (known !== undefined && !known.isClosed) return known;
  const { clock, reconnect } = surroundings;
  try {
    return await openSession(surroundings);
  } catch (error) {
    if (reconnect === undefined || !isUnreachable(error)) throw error;
  }
  return (await comeBack(clock, reconnect, signal, () => openSession(surroundings))).value;
}

function openSession(surroundings: TaskSurroundings): Promise<Session> {
  const { scheduler, transports, clock, modules, reconnect } = surroundings;
  const network = { clock, transports, timeoutMs: CONNECT_TIMEOUT_MS };
  const { codeRoot } = modules ?? {};
  return Session.open(scheduler, 'task', network, {
    codeRoot,
    ...(reconnect === undefined ? {} : { reconnect, returnWithinMs: RETURN_WITHIN_MS }),
  });
}

/** The scheduler may be there again in a moment. */
function isUnreachable(error: unknown): boolean {
  const codes = ['ERR_CONNECT', 'ERR_TIMEOUT', 'ERR_CLOSED'] as const;
  return codes.some((code) => YardmasterError.is(error, code));
}

function putBack(surroundings: TaskSurroundings, session: Session): void {
  if (session.isClosed) return;
  session.reset();
  // Objects that are bound to a client, such as locks, end with it.
  if (session.bonds > 0) closeSession(session);
  else if (session.mustLeave) inBackground(leave(surroundings, session), LEFT_BADLY);
  else poolOf(surroundings).push(session);
}

/** Queues exist for the clients that have used them: this one does no more. */
async function leave(surroundings: TaskSurroundings, session: Session): Promise<void> {
  session.mustLeave = false;
  try {
    await session.request('command', { command: 'coordination.leave', parameters: {} });
  } catch (error) {
    closeSession(session);
    throw error;
  }
  poolOf(surroundings).push(session);
}

function closeSession(session: Session): void {
  inBackground(session.close(), 'the client of a task could not be closed');
}

function poolOf(surroundings: TaskSurroundings): Session[] {
  let pool = idle.get(surroundings);
  if (pool === undefined) {
    const made: Session[] = [];
    surroundings.onClose(() => {
      for (const session of made.splice(0)) closeSession(session);
    });
    idle.set(surroundings, made);
    pool = made;
  }
  return pool;
}
