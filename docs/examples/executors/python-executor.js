// A task whose function returns `python(source, variables)` is finished by a process of Python: the variables go there
// as JSON, and what the source assigns to `result` comes back. A task that is cancelled has its process killed.
import { spawn } from 'node:child_process';
import { defineExecutor } from 'yardmaster/executor';
import { untilAborted } from './until-aborted.js';
import { isPython } from './python.js';

const HARNESS = `
import json, sys
given = json.load(sys.stdin)
scope = dict(given["variables"])
try:
    exec(given["source"], scope)
    answer = {"result": scope.get("result")}
except Exception as error:
    answer = {"name": type(error).__name__, "message": str(error)}
json.dump(answer, sys.__stdout__)
`;

export default defineExecutor({
  name: 'python',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      program: { type: 'string', default: 'python3', description: 'The interpreter.' },
    },
  },
  create: (context, { program }) => {
    const closed = new AbortController();
    return {
      threadCount: context.threadCount,
      run: (task, signal, slot) =>
        context.run(task, {
          signal,
          slot,
          call: async ({ fn, args }) => {
            const ended = AbortSignal.any([signal, closed.signal]);
            const returned = await untilAborted(fn(...args), ended);
            return isPython(returned) ? runPython(program, returned, ended) : returned;
          },
        }),
      close: async () => closed.abort(),
    };
  },
});

async function runPython(program, { source, variables }, signal) {
  const child = spawn(program, ['-c', HARNESS], { signal, killSignal: 'SIGKILL' });
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject); // Also when it is killed.
    child.on('close', resolve);
  });
  child.stdin.on('error', () => undefined); // It ended before it has read everything.
  child.stdin.end(JSON.stringify({ source, variables }));
  const texts = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const part of stream.setEncoding('utf8')) text += part;
    return text;
  });
  const [code, stdout, stderr] = await Promise.all([ended, ...texts]);
  if (code !== 0) throw new Error(`Python ended with ${code}: ${stderr}`);
  const { result, name, message } = JSON.parse(stdout);
  if (name !== undefined) throw Object.assign(new Error(message), { name });
  return result;
}
