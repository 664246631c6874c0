/** Runs commands of our command line one after the other in one process, which loads the program once. */
import { createRequire } from 'node:module';
import process from 'node:process';

const CLI = createRequire(import.meta.url).resolve('#cli');

/** What a command calls to end its process ends the command. */
class Exit extends Error {
  constructor(code) {
    super(`exit code ${code}`);
    this.code = code;
  }
}
process.exit = (code) => {
  throw new Exit(code);
};

/** What is written to a stream from now on. */
function capture(stream) {
  let text = '';
  stream.write = (chunk, ...rest) => {
    text += chunk;
    rest.find((each) => typeof each === 'function')?.();
    return true;
  };
  return () => text;
}

let count = 0;

async function run({ args, env }) {
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, env);
  process.argv.splice(2, Infinity, ...args);
  const [out, err] = [process.stdout, process.stderr].map(capture);
  let code = 0;
  try {
    // The entry alone is evaluated again, and not what it imports.
    await import(`${CLI}?${++count}`);
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    code = error.code;
  }
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error');
  return { code, out: out(), err: err() };
}

let last = Promise.resolve();
process.on('message', (asked) => {
  last = last.then(() => run(asked)).then((ended) => process.send(ended));
});
