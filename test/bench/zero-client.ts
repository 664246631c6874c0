/**
 * A client without futures, for `bench -- zero`: submits one graph over the wire and waits for its keys.
 * Arguments: address, shape, tasks. Prints one JSON line.
 */
import { Channel, PROTOCOL, VERSION, type WireMessage } from '../../core/api/index.ts';
import { SystemClock } from '../../adapters/clocks/index.ts';
import { inParts } from '../../adapters/client/message-limit.ts';
import { tcp } from '../../adapters/transports/tcp/index.ts';
import { SHAPES } from './shapes.ts';
import { print, round } from './side-by-side.ts';

const [address, shapeName, tasks, rounds] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];
const clock = new SystemClock();
const waiting = new Set<string>();
let finish: () => void;

const opened: { channel?: Channel } = {};
await tcp.create({ clock }, {}).connect(address, (connection) => {
  opened.channel = new Channel(connection, clock, {
    onMessage,
    onRequest: () => undefined,
    onClose: (error) => {
      if (waiting.size > 0) throw error ?? new Error('the scheduler closed the connection');
    },
  });
  return opened.channel;
});
const channel = opened.channel as Channel;
await channel.request('hello', { protocol: PROTOCOL, role: 'client', version: VERSION });
await channel.request('register-client', { client: 'bench' });

const seconds: number[] = [];
let submittedTasks = 0;
for (let turn = 0; turn < Number(rounds); turn++) seconds.push(await live());
print({ tasks: submittedTasks, seconds: seconds.map(round) });
await channel.close();

/** From the submission to the last wanted key. */
async function live(): Promise<number> {
  const graph = SHAPES[shapeName]?.(Number(tasks));
  if (graph === undefined) throw new Error(`there is no shape "${shapeName}"`);
  submittedTasks = graph.tasks.length;
  for (const key of graph.keys) waiting.add(key);
  const startMs = performance.now();
  const done = new Promise<void>((resolve) => (finish = resolve));
  const { tasks: submitted, keys } = graph;
  const stimulusId = `update-graph-bench-${submittedTasks}`;
  channel.send(...inParts({ op: 'update-graph', stimulusId, tasks: submitted, keys }));
  await done;
  const tookS = (performance.now() - startMs) / 1000;
  channel.send({ op: 'client-releases-keys', keys: graph.keys });
  await channel.request('command', { command: 'identity' });
  return tookS;
}

function onMessage(message: WireMessage): void {
  if (message['op'] !== 'key-in-memory') return;
  waiting.delete(message['key'] as string);
  if (waiting.size === 0) finish();
}
