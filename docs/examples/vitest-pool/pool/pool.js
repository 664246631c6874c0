/** A pool for Vitest: each test file is a task of a cluster. */
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client, LocalCluster } from 'yardmaster';
import { Durations } from './durations.js';
import { Messages } from './messages.js';
import { runFile } from './tasks.js';
import { TestFile } from './test-file.js';

/**
 * @param options `scheduler`: address of a cluster; without one, `cluster` are the options of a local one.
 *   `host`: of this machine, as workers reach it
 */
export function yardmasterPool({ scheduler, cluster, host = '127.0.0.1' } = {}) {
  let pool;
  return {
    name: 'yardmaster',
    createPoolWorker(options) {
      pool ??= new Pool(options.project.vitest, { scheduler, cluster, host });
      return new TestFile(pool, options);
    },
  };
}

class Pool {
  files = new Map();
  server = createServer((socket) => this.#greet(socket));
  #closing = [];
  #nextTurn;

  constructor(vitest, options) {
    this.root = vitest.config.root;
    this.host = options.host;
    this.isLocal = options.scheduler === undefined;
    this.durations = new Durations(this.root);
    this.isReady = this.#start(options);
    vitest.onClose(() => this.#close());
  }

  /** Resolves when the process of the file has ended, wherever that was. The longest are first. */
  async run(file, path, { env, execArgv, signal }) {
    this.files.set(file.id, file);
    await this.#turn();
    const place = { host: this.host, port: this.server.address().port, id: file.id };
    // A file that is not known yet may be long.
    const priority = this.durations.of(path) ?? Number.MAX_SAFE_INTEGER;
    return this.client
      .with({ pure: false, priority, signal })
      .submit(runFile, path, place, { cwd: this.root, env: changesOf(env), execArgv })
      .result();
  }

  /** The same promise for all files that Vitest hands over in one turn, so that they are submitted together. */
  #turn() {
    this.#nextTurn ??= nextTurn().then(() => {
      this.#nextTurn = undefined;
    });
    return this.#nextTurn;
  }

  async #start({ scheduler, cluster, host }) {
    await new Promise((resolve) => this.server.listen(0, host, resolve));
    if (scheduler === undefined) {
      const own = await LocalCluster.start(
        cluster ?? { workers: 1, threads: availableParallelism() },
      );
      this.#closing.push(() => own.close());
      this.client = await own.client();
    } else {
      this.client = await Client.connect(scheduler);
      this.#closing.push(() => this.client.close());
    }
  }

  /** The first message of a test process is the id of its file, which no other knows. */
  #greet(socket) {
    const messages = new Messages(socket, (id) => {
      const file = this.files.get(id);
      if (file === undefined) socket.destroy();
      else file.connect(messages);
    });
  }

  async #close() {
    this.durations.save();
    this.server.close();
    await this.isReady;
    await Promise.all([...this.files.values()].map((file) => file.ended));
    for (const close of this.#closing) await close();
  }
}

/** What Vitest adds to the environment of this process. */
function changesOf(env) {
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => process.env[name] !== value),
  );
}
