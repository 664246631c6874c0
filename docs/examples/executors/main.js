/** `node main.js [MODE]`: tasks in contexts of their own, and tasks in Python. */
import process from 'node:process';
import { LocalCluster } from 'yardmaster';
import { countGlobals, median, sleep, spin, square } from './tasks.js';

const [mode = 'processes'] = process.argv.slice(2);
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);

const options = { timeout: '2s' };
const executor = { use: './vm-executor.js', options };
const contexts = await LocalCluster.start({ mode, workers: 1, executor });
const client = await contexts.client();
say('squares:', await client.gather(client.map(square, [1, 2, 3])));
const impure = client.with({ pure: false });
const counts = [1, 2].map(() => impure.submit(countGlobals));
say('globals:', await client.gather(counts));
await client
  .submit(spin)
  .result()
  .catch(({ code, message }) => say(code, message));
await contexts.close();

const python = await LocalCluster.start({ mode, workers: 1, executor: './python-executor.js' });
const other = await python.client();
say('median:', await other.submit(median, [3, 1, 2]).result());
const long = other.submit(sleep, 3600);
setTimeout(() => long.cancel(), 1000);
await long.result().catch(({ code }) => say(code));
await python.close();
