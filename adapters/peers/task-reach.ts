/** The cluster, as the tasks of a worker reach it. */
import type { Clock, StoreSpec, Transport } from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import type { ReconnectRules } from '../../core/shared/reconnect.ts';
import type { ActorCaller, ClusterReach, RunContext, TaskSurroundings } from '../tasks/index.ts';
import type { TaskActors } from './task-actors.ts';

/** The surroundings of the tasks of one thread. What they rarely need is loaded when they do. */
export class Reach implements TaskSurroundings {
  private readonly closers = new Set<() => void>();
  private actors: Promise<TaskActors> | undefined;

  readonly scheduler: string;
  readonly transports: readonly Transport[];
  readonly modules: ModuleLimit | undefined;
  readonly reconnect: ReconnectRules | undefined;
  readonly resultStore: StoreSpec | undefined;

  constructor(
    { scheduler, transports, modules, reconnect, resultStore }: ClusterReach,
    readonly clock: Clock,
  ) {
    this.scheduler = scheduler;
    this.transports = transports;
    this.modules = modules;
    this.reconnect = reconnect;
    this.resultStore = resultStore;
  }

  onClose(close: () => void): void {
    this.closers.add(close);
  }

  actorCaller(run: RunContext): ActorCaller {
    return {
      send: async (actor, request) => {
        this.actors ??= this.loadActors();
        return (await this.actors).send(run, actor, request);
      },
    };
  }

  /** The worker closes. */
  close(): void {
    for (const close of this.closers) close();
    this.closers.clear();
  }

  private async loadActors(): Promise<TaskActors> {
    const { TaskActors } = await import('./task-actors.ts');
    const { clock, transports } = this;
    const actors = new TaskActors({ clock, transports });
    this.onClose(() => actors.close());
    return actors;
  }
}
