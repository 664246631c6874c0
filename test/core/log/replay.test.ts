import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import { fifo } from '../../../policies/ordering/fifo.ts';
import type { LogCheckpoint, LogFrame } from '../../../core/log/format.ts';
import { LogWriter } from '../../../core/log/log-writer.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import { RecordingKernel } from '../../../core/log/recording-kernel.ts';
import { Replay, type ReplayProgress } from '../../../core/log/replay.ts';
import type { StatePart } from '../../../core/kernel/snapshot.ts';
import type { KernelOptions, KernelPorts } from '../../../core/kernel/ports.ts';
import { effort } from '../../kit/effort.ts';
import { HEADER } from './header.ts';
import { makePorts, type PortsOptions } from '../../kit/ports.ts';
import { scenario, type Scenario } from '../../kit/random-scenario.ts';
import { play } from '../../kit/random-world.ts';
import { made } from '../../kit/made.ts';

function optionsOf({ options }: Scenario): Partial<KernelOptions> {
  return { ...options, validate: true, transitionLogLength: 10_000 };
}

interface Recorded {
  readonly frames: readonly LogFrame[];
  /** What the kernel was given when policies were replaced. */
  readonly replacements: readonly KernelPorts[];
}

/** Plays a scenario on a kernel that is recorded. The frames are read from bytes. */
function record(played: Scenario): Recorded {
  const parts: Uint8Array[] = [];
  const replacements: KernelPorts[] = [];
  const codec = new MsgpackCodec();
  const log = new LogWriter(codec, (bytes) => parts.push(bytes.slice()), HEADER, 0);
  class Kernel extends RecordingKernel {
    override replacePorts(ports: KernelPorts): void {
      replacements.push(ports);
      super.replacePorts(ports);
    }
  }
  const ports = makePorts({ queuing: { workerSaturation: played.saturation } });
  const kernel = new Kernel(optionsOf(played), ports, 0, log);
  play(played, kernel);
  log.end(kernel.checkNow(true), 0);
  const frames = [...new LogReader(codec, 'recording').read(Buffer.concat(parts))];
  return { frames, replacements };
}

function replay(
  { frames, replacements }: Recorded,
  played: Scenario,
  policies: PortsOptions['policies'] = {},
): ReplayProgress {
  return replayFrom(
    frames,
    frames.findIndex(({ kind }) => kind === 'checkpoint'),
    played,
    replacements,
    policies,
  );
}

/** Plays a scenario on a kernel that writes its state all the time. */
function recordWithCheckpoints(played: Scenario): readonly LogFrame[] {
  const parts: Uint8Array[] = [];
  const codec = new MsgpackCodec();
  const often = { bytesMin: 500, ratio: 0 };
  const log = new LogWriter(codec, (bytes) => parts.push(bytes.slice()), HEADER, 0, often);
  const ports = makePorts({ queuing: { workerSaturation: played.saturation } });
  const kernel = new RecordingKernel(optionsOf(played), ports, 0, log);
  const steps = played.steps.filter(({ what }) => what !== 'replace-policies');
  play({ ...played, steps }, kernel);
  log.end(kernel.checkNow(true), 0);
  return [...new LogReader(codec, 'recording').read(Buffer.concat(parts))];
}

/** Replays what follows on the checkpoint that ends at this frame. */
function replayFrom(
  frames: readonly LogFrame[],
  end: number,
  played: Scenario,
  replacements: readonly KernelPorts[] = [],
  policies: PortsOptions['policies'] = {},
): ReplayProgress {
  const ports = makePorts({ queuing: { workerSaturation: played.saturation }, policies });
  const again = new Replay(optionsOf(played), ports, 0, 'all');
  let replaced = 0;
  let state: StatePart[] = [];
  for (const frame of frames.slice(0, end)) {
    if (frame.kind === 'state') state.push(frame.payload);
    else state = [];
  }
  again.begin(state, frames[end]!.payload as LogCheckpoint);
  for (const frame of frames.slice(end + 1)) {
    if (frame.kind === 'policies') again.replacePorts(replacements[replaced++]!);
    if (frame.kind === 'checkpoint') again.pass(frame.payload);
    if (frame.kind === 'stimulus' || frame.kind === 'check' || frame.kind === 'end') {
      again.play(frame);
    }
  }
  return again.progress;
}

it('a replay decides the same from every checkpoint of a recording on', () => {
  let checkpoints = 0;
  fc.assert(
    fc.property(scenario, (played) => {
      const frames = recordWithCheckpoints(played);
      for (const { kind, sequence } of frames) {
        if (kind !== 'checkpoint') continue;
        checkpoints++;
        const { difference, isComplete } = replayFrom(frames, sequence, played);
        expect(difference).toBeUndefined();
        expect(isComplete).toBe(true);
      }
    }),
    effort(25),
  );
  expect(checkpoints).toBeGreaterThan(0);
});

describe('a recording of random stimuli', () => {
  it('is replayed with the same decisions and the same state', () => {
    fc.assert(
      fc.property(scenario, (played) => {
        const { difference, isComplete, stateChecks } = replay(record(played), played);
        expect(difference).toBeUndefined();
        expect(isComplete).toBe(true);
        expect(stateChecks).toBe(1);
      }),
      effort(60),
    );
  });

  it('shows the first stimulus after which another policy decides otherwise', () => {
    const policies = { ordering: made(fifo) };
    const orders = fc.sample(scenario, { numRuns: 100, seed: 1 }).map((played) => {
      const recorded = record(played);
      return { played, recorded, progress: replay(recorded, played, policies) };
    });
    const differing = orders.filter(({ progress }) => progress.difference !== undefined);
    expect(differing.length).toBeGreaterThan(5);
    for (const { recorded, progress, played } of differing) {
      const { stimulus, sequence } = progress.difference!;
      expect(recorded.frames[sequence]?.payload).toBe(stimulus);
      // Up to that stimulus both did the same.
      const frames = recorded.frames.slice(0, sequence);
      const before = replay({ ...recorded, frames }, played, policies);
      expect(before.difference).toBeUndefined();
    }
  });
});
