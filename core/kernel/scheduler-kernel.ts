import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { KernelOptions } from './options.ts';
import type { Outbox } from './outbox.ts';
import type { KernelPorts } from './ports.ts';
import type { TransitionRecord } from './story.ts';

export declare class SchedulerKernel {
  readonly cluster: ClusterState;
  constructor(options: Partial<KernelOptions>, ports: KernelPorts, nowMs: number);
  handle(stimulus: Stimulus, nowMs: number): Outbox;
  replacePorts(ports: KernelPorts): void;
  story(...keysOrStimuli: string[]): TransitionRecord[];
}
