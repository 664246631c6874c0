/** The Python process beside the scheduler: requests to it, and what it asks in turn. */
import { fileURLToPath } from 'node:url';

import type { YardmasterError } from '../../../core/api/index.ts';
import { type Clock, type Logger } from '../../../core/api/index.ts';
import type { Fields } from '../context.ts';
import { HelperProcess } from '../graph/helper-process.ts';
import type { PythonCommand } from '../graph/index.ts';
import { PythonError, uncaughtAnswer } from '../rpc/py-errors.ts';
import { isFields } from '../codec/values.ts';
import { type CompanionEvent, Outbox } from './outbox.ts';

/** A folder that Python can run. It stands beside this module, in the sources as in the package. */
const PROGRAM = fileURLToPath(new URL('./yardmaster_companion', import.meta.url));

/** What the process needs of its surroundings. */
interface CompanionPort {
  readonly clock: Clock;
  readonly log: Logger;
  /** What Python asks for. It may throw, or answer later. */
  answer(op: string, fields: Fields): unknown;
  /** See {@link Outbox}. */
  holdPeers(isHeld: boolean): void;
  /** It is gone, whatever the reason. Called once. */
  ended(reason: YardmasterError): void;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: Error) => void;
}

/** One life of the process. It starts with its construction. */
export class CompanionProcess {
  private readonly process: HelperProcess;
  private readonly outbox: Outbox;
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private end: YardmasterError | undefined;

  constructor(
    command: PythonCommand,
    private readonly port: CompanionPort,
  ) {
    const { log } = port;
    this.process = new HelperProcess(
      command,
      {
        ready: (versions) => {
          log.info(
            { command, versions, pid: this.pid },
            'the Python beside the scheduler is ready',
          );
        },
        answer: (message) => this.take(message),
        line: (text) => log.info({ text }, `Python beside the scheduler: ${text}`),
        ended: (reason) => this.bury(reason),
      },
      { program: PROGRAM, name: 'the Python beside the scheduler', purpose: PURPOSE },
    );
    this.outbox = new Outbox({
      clock: port.clock,
      send: (message) => this.write(message),
      holdPeers: (isHeld) => port.holdPeers(isHeld),
      giveUp: (reason) => this.kill(reason),
    });
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  addEvent(event: CompanionEvent): void {
    this.outbox.addEvent(event);
  }

  /** A message of the stream of a peer, for a handler that a plugin has added. */
  pass(handler: string, fields: Fields): void {
    if (this.end === undefined) this.outbox.addRequest({ op: 'stream', handler, fields });
  }

  /**
   * A request, in its order with the events.
   * @throws PythonError what Python raised; YardmasterError `ERR_CLOSED`, `ERR_CONNECT`, `ERR_TIMEOUT`
   *   when the process has ended
   */
  request(op: string, fields: Fields): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.end !== undefined) {
        reject(this.end);
        return;
      }
      const id = ++this.count;
      this.waiting.set(id, { resolve, reject });
      this.outbox.addRequest({ ...fields, op, id });
    });
  }

  /** Ends it at once; what waits for it fails. */
  kill(reason: YardmasterError): void {
    this.process.kill();
    this.bury(reason);
  }

  private write(message: Fields): void {
    if (this.end !== undefined) return;
    try {
      this.process.send(message);
    } catch (cause) {
      this.writeParts(message, cause as Error);
    }
  }

  /**
   * Handles a message of which one part cannot be expressed in Python: a request fails, an event is
   * left out.
   */
  private writeParts(message: Fields, cause: Error): void {
    const { events, id } = message;
    if (typeof id === 'number') {
      this.waiting.get(id)?.reject(cause);
      this.waiting.delete(id);
      return;
    }
    const list = Array.isArray(events) ? (events as readonly CompanionEvent[]) : [];
    if (list.length > 1) {
      for (const event of list) this.write({ op: 'events', events: [event] });
      return;
    }
    const [name] = list[0] ?? [String(message['op'])];
    const text = `the event ${name} cannot be passed to plugins in Python: ${cause.message}`;
    this.port.log.warn({ err: cause, event: name }, text);
    this.outbox.handled(list.length);
  }

  private take(message: Fields): void {
    const { acknowledged, ask, id } = message;
    if (typeof acknowledged === 'number') this.outbox.handled(acknowledged);
    else if (ask !== undefined) this.answer(ask, message);
    else if (typeof id === 'number') {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      const { error, result } = message;
      if (isFields(error)) waiting?.reject(new PythonError(textOf(error), error));
      else waiting?.resolve(result ?? null);
    }
  }

  private answer(ask: unknown, { op, fields }: Fields): void {
    const reply = (value: unknown): void => {
      if (ask === null || this.end !== undefined) return;
      try {
        this.process.send({ answer: ask, value: value ?? null });
      } catch (error) {
        fail(error);
      }
    };
    const fail = (error: unknown): void => {
      if (ask !== null) this.process.send({ answer: ask, error: uncaughtAnswer(error) });
      else this.port.log.warn({ err: error, op }, `${String(op)} for Python failed`);
    };
    try {
      const answered = this.port.answer(String(op), isFields(fields) ? fields : {});
      if (answered instanceof Promise) answered.then(reply, fail);
      else reply(answered);
    } catch (error) {
      fail(error);
    }
  }

  private bury(reason: YardmasterError): void {
    if (this.end !== undefined) return;
    this.end = reason;
    this.outbox.close();
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waiting) reject(reason);
    this.port.ended(reason);
  }
}

const PURPOSE = 'run_on_scheduler, plugins of the scheduler and performance_report need';

function textOf(error: Fields): string {
  const { exception_text: text } = error;
  return typeof text === 'string' ? text : 'an exception in Python';
}
