/** The table of parameters against the signatures of real releases. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

import { PARAMETERS } from '../../../../adapters/dask/parameters.ts';
import { DaskBench } from '../peers.ts';
import { findDaskPython, skipReason } from '../pythons.ts';

type Signature = readonly [required: readonly string[], others: readonly string[]];
type Kind = 'request' | 'stream';
interface Release extends Readonly<Record<Kind, Readonly<Record<string, Signature>>>> {
  readonly version: string;
}

const SCRIPT = fileURLToPath(new URL('../fixtures/signatures.py', import.meta.url));
const RELEASES = JSON.parse(
  readFileSync(new URL('../fixtures/signatures.json', import.meta.url), 'utf8'),
) as readonly Release[];
const found = findDaskPython();

/** What Yardmaster takes besides, or releases between those of the fixture took. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  amm_handler: ['policy', 'options'],
  rebalance: ['measure', 'sender_min', 'recipient_max', 'sender_recipient_gap'],
  // Dask passes what it does not know on to `workers_to_close`, which refuses it.
  retire_workers: ['memory_ratio', 'n', 'key', 'minimum', 'target', 'attribute'],
  cancel: ['reason', 'msg'], // 2025.2
  shuffle_get_or_create: ['id', 'spec', 'type'], // 2023.2 to 2024.10
};
/** What releases between those of the fixture did not demand. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  shuffle_barrier: ['consistent'], // before 2024.2
  shuffle_get_or_create: ['key', 'shuffle_id'], // 2023.2 to 2024.10
};

describe('the parameters of Dask’s operations', () => {
  const cases = (['request', 'stream'] as const).flatMap((kind) =>
    [...PARAMETERS[kind].keys()]
      .filter((op) => RELEASES.some((release) => release[kind][op] !== undefined))
      .map((op) => [kind, op] as const),
  );

  it.each(cases)('%s %s takes what the releases take, and nothing else', (kind, op) => {
    const list = RELEASES.map((release) => release[kind][op]).filter((each) => each !== undefined);
    const taken = new Set([...list.flat(2), ...(MORE[op] ?? [])]);
    const { required, known } = PARAMETERS[kind].get(op)!;
    const isAny = taken.has('**') && op !== 'retire_workers';
    expect(known === undefined).toBe(isAny);
    taken.delete('**');
    if (known !== undefined) expect([...known].sort()).toEqual([...taken].sort());
    const demanded = list
      .map(([names]) => names)
      .reduce((one, other) => one.filter((name) => other.includes(name)))
      .filter((name) => !(OPTIONAL[op] ?? []).includes(name));
    expect([...required].sort()).toEqual([...demanded].sort());
  });

  it.skipIf(found === undefined)(`are those of the installed release${skipReason(found)}`, () => {
    const { stdout } = spawnSync(found!.command, [SCRIPT], { encoding: 'utf8' });
    const installed = JSON.parse(stdout.trim().split('\n').at(-1)!) as Release;
    const version = installed.version.split('+')[0]!;
    const known = RELEASES.find((release) => release.version === version);
    if (known !== undefined) expect({ ...installed, version }).toEqual(known);
    // A release that is not in the fixture takes nothing that would be refused.
    for (const [kind, op] of cases) {
      const names = (installed[kind][op] ?? []).flat().filter((name) => name !== '**');
      const taken = PARAMETERS[kind].get(op)!.known;
      expect(
        names.filter((name) => taken?.has(name) === false),
        op,
      ).toEqual([]);
    }
  });
});

describe('parameters that an operation does not have', () => {
  let bench: DaskBench;
  afterEach(() => bench.close());

  it('are refused before anything happens, whichever the operation is', async () => {
    bench = await DaskBench.start();
    const worker = await bench.runningWorker(40_001);
    const refusals = new Map<string, unknown>();
    for (const op of PARAMETERS.request.keys()) {
      if (PARAMETERS.request.get(op)!.known === undefined || op.startsWith('register-')) continue;
      refusals.set(op, await bench.ask(op, { wokers: [worker.address] }));
    }
    for (const [op, answer] of refusals) {
      expect(answer, op).toMatchObject({
        status: 'uncaught-error',
        exception_text: `TypeError("${op.replaceAll('-', '_')}() got an unexpected keyword argument 'wokers'")`,
      });
    }
    expect([...bench.scheduler.cluster.workers.keys()]).toEqual([worker.address]);
    expect(await bench.ask('gather')).toMatchObject({
      exception_text: `TypeError("gather() missing 1 required argument: 'keys'")`,
    });
    expect(await bench.ask('set_metadata', { keys: ['a'], value: 1 })).toBe(null);
  });

  it('of a registration are refused', async () => {
    bench = await DaskBench.start();
    const versions = { packages: { distributed: '2026.8.0' } };
    const client = { client: 'C', versions, nmae: 'x' };
    expect(await bench.ask('register-client', client)).toMatchObject({
      exception_text: `TypeError("register_client() got an unexpected keyword argument 'nmae'")`,
    });
    expect([...bench.scheduler.cluster.clients.keys()]).not.toContain('C');
  });

  it('of a message on a stream are refused, and the tasks of a graph fail', async () => {
    bench = await DaskBench.start();
    const client = await bench.client('C');
    client.comm.write([
      { op: 'client-desires-keys', keys: ['x'], client: 'C', clinet: 'D' },
      { op: 'update-graph', keys: ['y'], tasks: {}, dependencies: {}, priorty: 1 },
    ]);
    const answer = await client.next('task-erred');
    expect(answer).toMatchObject({ key: 'y' });
  });
});
