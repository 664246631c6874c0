import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';

/**
 * What Vitest takes for a worker: one test file, from its place in the queue to its results. When the worker of the
 * cluster dies, another process asks for the file again, and gets the same messages.
 */
export class TestFile {
  name = 'yardmaster';
  id = randomUUID();
  /** Settles, never fails, once no process runs the file. */
  ended = Promise.resolve();
  #events = new EventEmitter();
  #pool;
  #options;
  #start;
  #request;
  #messages;
  #startedMs;
  #hasFinished = false;
  #stopping = new AbortController();

  constructor(pool, options) {
    this.#pool = pool;
    this.#options = options;
    // Vitest writes transformed modules to files instead of sending them, where processes can read these.
    this.cacheFs = pool.isLocal;
  }

  on(event, listener) {
    this.#events.on(event, listener);
  }

  off(event, listener) {
    this.#events.off(event, listener);
  }

  deserialize(message) {
    return message;
  }

  start() {
    return this.#pool.isReady;
  }

  /** Vitest expects its worker to start at once; the file may have to wait for a place in the cluster. */
  send(message) {
    if (message.type === 'start') {
      this.#start = message;
      this.#answer('started');
    } else if (message.type === 'run' || message.type === 'collect') {
      this.#request = message;
      this.#submit(message.context.files[0].filepath);
    } else if (message.type === 'stop' && this.#messages === undefined) this.#answer('stopped');
    else this.#messages?.send(message);
  }

  /** A process is there that runs the file; the one before it, if any, has lost its worker. */
  connect(messages) {
    if (this.#hasFinished) return void messages.end();
    this.#messages?.end();
    this.#messages = messages;
    this.#startedMs = performance.now();
    messages.onMessage = (message) => {
      if (messages === this.#messages) this.#receive(message);
    };
    messages.send(this.#start);
  }

  /** Once the file has finished, its process ends by itself. */
  async stop() {
    if (!this.#hasFinished) this.#stopping.abort();
    this.#messages?.end();
    await this.ended;
    this.#pool.files.delete(this.id);
  }

  #receive(message) {
    if (message.type === 'started') {
      if (message.error === undefined) this.#messages.send(this.#request);
      else this.#answer('testfileFinished', message.error);
      return;
    }
    if (message.type === 'testfileFinished') {
      const path = this.#request.context.files[0].filepath;
      this.#pool.durations.learn(path, performance.now() - this.#startedMs);
      this.#hasFinished = true;
    }
    this.#events.emit('message', message);
  }

  #submit(path) {
    const { signal } = this.#stopping;
    const fail = (error) => {
      if (!this.#hasFinished && !signal.aborted) this.#events.emit('error', error);
    };
    this.ended = this.#pool
      .run(this, path, { ...this.#options, signal })
      .then(
        () => fail(new Error(`the process of ${path} has left before its tests were done`)),
        fail,
      );
  }

  #answer(type, error) {
    this.#events.emit('message', { __vitest_worker_response__: true, type, error });
  }
}
