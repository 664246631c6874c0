import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { ActorHost, packArguments, sourceVersion } from '../../../adapters/tasks/index.ts';

test('an actor that is released while it is made does not stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-actor-'));
  const path = join(folder, 'actor.mjs');
  writeFileSync(
    path,
    'await new Promise((resolve) => setTimeout(resolve, 200)); export class A { x() { return 1; } }',
  );
  const module = pathToFileURL(path).href;
  const host = new ActorHost(() => performance.now(), undefined);
  const { bytes: args } = packArguments([], () => undefined);
  const runSpec = { module, name: 'A', version: sourceVersion(module), args };
  const making = host.make({ key: 'a', actorAt: 'w', inputs: new Map(), runSpec });
  host.release('a');
  expect(await making).toMatchObject({ kind: 'failure', error: { code: 'ERR_ACTOR_LOST' } });
  expect(await host.call({ key: 'a' } as never)).toMatchObject({ kind: 'failure' });
  rmSync(folder, { recursive: true });
});
