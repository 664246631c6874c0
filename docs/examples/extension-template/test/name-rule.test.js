import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualCluster } from 'yardmaster/testing';
import { square } from './tasks.js';

const start = (options) =>
  VirtualCluster.start({
    config: { scheduler: { plugins: [{ use: 'yardmaster-name-rule', options }] } },
  });

test('a key that does not match is refused with the reason', async () => {
  const cluster = await start({ pattern: '^team-a/' });
  const client = await cluster.client();
  const refused = client.with({ key: 'mine' }).submit(square, 4);
  await assert.rejects(cluster.drive(refused.result()), {
    code: 'ERR_REFUSED',
    message: /: the key mine does not match \^team-a\/$/,
  });
  await cluster.close();
});

test('options that do not fit the schema start nothing', async () => {
  await assert.rejects(start({ patern: '.' }), { code: 'ERR_CONFIG', message: /patern/ });
});
