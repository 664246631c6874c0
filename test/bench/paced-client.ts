/**
 * A client that submits tasks at a rate, for `bench -- viewers` and `bench -- dashboard`.
 * Arguments: address, tasks per second, tasks in all, `keep` or `drop` what is finished. Prints one JSON line when the
 * last task is finished; with `keep` it then waits for the end of its input.
 */
import { Channel, PROTOCOL, VERSION, type WireMessage } from '../../core/api/index.ts';
import { SystemClock } from '../../adapters/clocks/index.ts';
import { tcp } from '../../adapters/transports/tcp/index.ts';
import { map } from '../../adapters/workloads/index.ts';
import { print, round } from './side-by-side.ts';

/** Between two submissions. */
const STEP_MS = 100;

/** More tasks than this in flight are not submitted: a scheduler that is too slow sets the rate. */
const IN_FLIGHT_MAX = 50_000;

const PREFIXES = ['load', 'parse', 'clean', 'filter', 'join', 'group', 'sum', 'store'];

const [address, rate, total, what] = process.argv.slice(2) as [string, string, string, string];
const clock = new SystemClock();
const opened: { channel?: Channel } = {};
let submitted = 0;
let finished = 0;
let over: () => void;
const isOver = new Promise<void>((resolve) => (over = resolve));
let drop: string[] = [];

await tcp.create({ clock }, {}).connect(address, (connection) => {
  opened.channel = new Channel(connection, clock, {
    onMessage,
    onRequest: () => undefined,
    onClose: () => process.exit(0),
  });
  return opened.channel;
});
const channel = opened.channel as Channel;
await channel.request('hello', { protocol: PROTOCOL, role: 'client', version: VERSION });
await channel.request('register-client', { client: `paced-${process.pid}` });
const [model] = map(1).tasks;
if (model === undefined) throw new Error('the workload "map" has no task');
const startMs = performance.now();
const timer = setInterval(submit, STEP_MS);
await isOver;
clearInterval(timer);
print({ finished, seconds: round((performance.now() - startMs) / 1000) });
if (what === 'keep') process.stdin.resume().on('end', () => process.exit(0));
else await channel.close();

/** What is due by now, in messages of a thousand tasks. */
function submit(): void {
  if (drop.length > 0) {
    channel.send({ op: 'client-releases-keys', keys: drop });
    drop = [];
  }
  const due = Math.min(
    Number(total),
    Math.floor(((performance.now() - startMs) / 1000) * Number(rate)),
    finished + IN_FLIGHT_MAX,
  );
  while (submitted < due) {
    const count = Math.min(1000, due - submitted);
    const name = PREFIXES[Math.floor(submitted / 1000) % PREFIXES.length] ?? '';
    const keys = Array.from({ length: count }, (_, k) => `${name}-${process.pid}-${submitted + k}`);
    const tasks = keys.map((key) => ({ ...model, key, dependencies: [] }));
    channel.send({
      op: 'update-graph',
      stimulusId: `paced-${process.pid}-${submitted}`,
      tasks,
      keys,
    });
    submitted += count;
  }
}

function onMessage(message: WireMessage): void {
  if (message['op'] !== 'key-in-memory') return;
  if (what !== 'keep') drop.push(message['key'] as string);
  if (++finished === Number(total)) over();
}
