/** Kernels that are wrong, each in its own way: the search has to find every one of them. */
import type { MakeKernel } from '../../adapters/simulator/index.ts';
import type { KernelOptions, KernelPorts } from '../../core/kernel/ports.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import { NO_LOG } from '../../core/log/replay.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';

type Envelope = Outbox['toWorkers'][number];
type Letter = Outbox['toClients'][number];

/** A kernel whose stimuli and messages a bug may change. */
class BuggyKernel extends RecordingKernel {
  /** How often the bug had its chance. */
  protected chances = 0;

  constructor(options: Partial<KernelOptions>, ports: KernelPorts, nowMs: number) {
    super(options, ports, nowMs, NO_LOG);
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    const outbox = this.isDropped?.(stimulus)
      ? { toWorkers: [], toClients: [], events: [] }
      : super.handle(stimulus, nowMs);
    return {
      toWorkers: this.toWorkers(outbox.toWorkers),
      toClients: outbox.toClients.filter((letter) => this.isLost?.(letter) !== true),
      events: outbox.events,
    };
  }

  protected isDropped?(stimulus: Stimulus): boolean;

  protected isLost?(letter: Letter): boolean;

  protected toWorkers(envelopes: readonly Envelope[]): readonly Envelope[] {
    return envelopes;
  }

  /** True at every n-th chance. */
  protected every(n: number): boolean {
    return ++this.chances % n === 0;
  }
}

class DropsReports extends BuggyKernel {
  protected override isDropped({ op }: Stimulus): boolean {
    return op === 'task-finished' && this.every(90);
  }
}

class OverlooksDeaths extends BuggyKernel {
  protected override isDropped(stimulus: Stimulus): boolean {
    return stimulus.op === 'remove-worker' && !stimulus.expected && this.every(2);
  }
}

class LosesStealAnswers extends BuggyKernel {
  protected override isDropped({ op }: Stimulus): boolean {
    return op === 'steal-response' && this.every(5);
  }
}

class LosesNewsOfResults extends BuggyKernel {
  protected override isLost({ message }: Letter): boolean {
    return message.op === 'key-in-memory' && this.every(60);
  }
}

/** A result that was lost and computed again is not announced. */
class LosesNewsOfSecondResults extends BuggyKernel {
  private readonly lost = new Set<string>();

  protected override isLost({ message }: Letter): boolean {
    if (message.op === 'lost-data') this.lost.add(message.key);
    return message.op === 'key-in-memory' && this.lost.has(message.key);
  }
}

class ForgetsAnInput extends BuggyKernel {
  protected override toWorkers(envelopes: readonly Envelope[]): readonly Envelope[] {
    return envelopes.map((envelope) => {
      const { message } = envelope;
      if (message.op !== 'compute-task' || message.dependencies.keys.length < 3) return envelope;
      if (!this.every(4)) return envelope;
      const { keys, nbytes, whoHas } = message.dependencies;
      const dependencies = {
        keys: keys.slice(1),
        nbytes: nbytes.slice(1),
        whoHas: whoHas.slice(1),
      };
      return { ...envelope, message: { ...message, dependencies } };
    });
  }
}

class SendsToTheWrongWorker extends BuggyKernel {
  protected override toWorkers(envelopes: readonly Envelope[]): readonly Envelope[] {
    const [other] = this.cluster.workersByRank;
    return envelopes.map((envelope) => {
      const isMisled = envelope.message.op === 'compute-task' && this.every(50);
      return isMisled && other !== undefined ? { ...envelope, worker: other } : envelope;
    });
  }
}

class MiscountsBytes extends BuggyKernel {
  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    const outbox = super.handle(stimulus, nowMs);
    const [worker] = this.cluster.workersByRank;
    if (stimulus.op === 'heartbeat-worker' && worker !== undefined && this.every(7))
      worker.nbytes++;
    return outbox;
  }
}

class ThrowsWhenAWorkerComesBack extends BuggyKernel {
  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    if (stimulus.op === 'register-worker' && this.cluster.tasks.size > 0 && this.every(2)) {
      throw new Error('planted');
    }
    return super.handle(stimulus, nowMs);
  }
}

/** The order of messages depends on something that is not a stimulus. */
class DependsOnChance extends BuggyKernel {
  private static count = 0;

  protected override toWorkers(envelopes: readonly Envelope[]): readonly Envelope[] {
    const receivers = new Set(envelopes.map(({ worker }) => worker));
    if (receivers.size < envelopes.length || envelopes.length < 2) return envelopes;
    return ++DependsOnChance.count % 3 === 0 ? envelopes.toReversed() : envelopes;
  }
}

/** With the first seed that finds each: those before it take time. */
const KERNELS = [
  [DropsReports, 2],
  [OverlooksDeaths, 5],
  [LosesStealAnswers, 38],
  [LosesNewsOfResults, 4],
  [LosesNewsOfSecondResults, 4],
  [ForgetsAnInput, 2],
  [SendsToTheWrongWorker, 2],
  [MiscountsBytes, 1],
  [ThrowsWhenAWorkerComesBack, 5],
  [DependsOnChance, 1],
] as const;

/** The planted bugs by name. */
export const PLANTED_BUGS: readonly (readonly [
  name: string,
  from: number,
  makeKernel: MakeKernel,
])[] = KERNELS.map(([Kernel, from]) => [
  Kernel.name,
  from,
  (options, ports, nowMs) => new Kernel(options, ports, nowMs),
]);
