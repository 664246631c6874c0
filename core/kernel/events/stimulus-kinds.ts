/** Stimuli by where they come from, as the kernel dispatches them. */
import type { Stimulus } from '../../messages/stimulus.ts';

/** What comes with the name of a client. */
export type ClientStimulus = Extract<Stimulus, { readonly client: string }>;

/** What a worker says of itself, and of what it holds. */
export type WorkerStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'long-running'
      | 'runs-over'
      | 'steal-response'
      | 'add-keys'
      | 'request-refresh-who-has'
      | 'release-worker-data'
      | 'worker-status-change'
      | 'register-worker'
      | 'heartbeat-worker'
      | 'remove-worker';
  }
>;

/** What plugins ask for: the Active Memory Manager, work stealing, and others. */
export type PluginStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'move-replicas'
      | 'want-replicas'
      | 'set-worker-status'
      | 'steal-tasks'
      | 'set-restrictions'
      | 'release-tasks';
  }
>;

/** Stimuli of the host itself: a timer, or a continuation. */
export type HostStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'policies-replaced'
      | 'workers-lost'
      | 'scheduler-stalled'
      | 'check-worker-ttl'
      | 'check-no-workers-timeout'
      | 'continue-graph'
      | 'continue-settling'
      | 'restart';
  }
>;
