import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from 'vitest';

import { SystemClock } from '../../../../adapters/clocks/index.ts';
import type { Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { Comm } from '../../../../adapters/dask/wire/comm.ts';
import { DaskListener } from '../../../../adapters/dask/wire/listener.ts';
import {
  killedWorker,
  opaqueException,
  PythonException,
  uncaughtAnswer,
} from '../../../../adapters/dask/wire/py-errors.ts';
import { findDaskPython } from '../pythons.ts';

const PEER = fileURLToPath(new URL('../fixtures/peer.py', import.meta.url));
const daskPython = findDaskPython()?.command;
const clock = new SystemClock();

/** Answers what peer.py says; resolves when we have called it, too. */
async function serve(comm: Comm): Promise<unknown> {
  for (;;) {
    const message = (await comm.read()) as { op: string; address: string };
    if (message.op === 'echo') comm.write(message);
    else if (message.op === 'errors') comm.write(errors());
    else {
      const peer = await Comm.connect(message.address, { clock });
      const answer = (await peer.call('hello', { x: 1 })) as { got: unknown; large: Opaque };
      await peer.close();
      expect(answer.large.nbytes).toBeGreaterThan(80_000_000);
      return answer.got;
    }
  }
}

function errors(): unknown[] {
  return [
    uncaughtAnswer(new PythonException('ValueError', 'wrong ä \ud800'))['exception'],
    uncaughtAnswer(new PythonException('KeyError', [['x', 1]]))['exception'],
    uncaughtAnswer(new Error('of ours'))['exception'],
    uncaughtAnswer(new PythonException('TimeoutError'))['exception'],
    opaqueException(new PythonException('NotImplementedError', 'the feature')),
    opaqueException(killedWorker('inc-1', { address: 'tcp://10.0.0.1:1', name: 'w' }, 3)),
  ];
}

test.skipIf(daskPython === undefined)(
  'a real Dask process and ours understand each other, in both directions',
  async () => {
    let served: Promise<unknown> | undefined;
    const listener = await DaskListener.listen('tcp://127.0.0.1:0', { clock }, (comm) => {
      comm.trust();
      served = serve(comm);
    });
    const { stdout } = await promisify(execFile)(daskPython!, [PEER, listener.address]);
    expect(await served).toEqual({ op: 'hello', x: 1, reply: true });
    const { errors: told } = JSON.parse(stdout) as { errors: string[][] };
    expect(told.slice(0, 3)).toEqual([
      ['builtins', 'ValueError', 'wrong ä \ufffd'],
      ['builtins', 'KeyError', "('x', 1)"],
      ['builtins', 'RuntimeError', 'of ours'],
    ]);
    expect(told[3]?.[1]).toBe('TimeoutError');
    expect(told[4]).toEqual(['builtins', 'NotImplementedError', 'the feature']);
    expect(told[5]?.slice(0, 2)).toEqual(['distributed.scheduler', 'KilledWorker']);
    expect(told[5]?.[2]).toContain('tcp://10.0.0.1:1');
    await listener.close();
  },
);
