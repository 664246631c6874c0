/** Runs one test file: `node test-process.js HOST PORT ID`. It ends when Vitest or the worker does. */
import { connect } from 'node:net';
import process from 'node:process';
import { init, runBaseTests, setupEnvironment } from 'vitest/worker';
import { Messages } from './messages.js';

const [host, port, id] = process.argv.slice(2);
// Tests may replace it.
const exit = process.exit.bind(process);
const listeners = new Set();

const socket = connect(Number(port), host);
const messages = new Messages(socket, (message) => {
  for (const listener of listeners) listener(message);
});
socket.on('close', () => exit(0));
process.on('disconnect', () => exit(0));

const runTests = (method) => async (state, traces) => {
  try {
    await runBaseTests(method, state, traces);
  } finally {
    process.exit = exit;
  }
};
init({
  post: (message) => messages.send(message),
  on: (listener) => listeners.add(listener),
  off: (listener) => listeners.delete(listener),
  runTests: runTests('run'),
  collectTests: runTests('collect'),
  setup: setupEnvironment,
  teardown: () => messages.end(() => exit(0)),
});
messages.send(id);
