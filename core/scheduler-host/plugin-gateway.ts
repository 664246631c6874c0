import type { YardmasterError } from '../api/errors.ts';
import type { Caller, NewStimulus } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers } from '../api/transport.ts';
import type { Insight } from '../kernel/insight/insight.ts';
import { inject } from '../plugin-host/injection/di.ts';
import type { PluginHost } from '../plugin-host/loaded-plugin.ts';
import type { ClusterState, LanguageOf } from '../state/cluster.ts';
import { COMMANDS, type Commands } from './commands/commands.ts';
import { PORTS_REPLACEMENT, type PortsReplacement } from './kernel-ports.ts';
import { ERROR_REPORTS, type ErrorReports } from './life/error-reports.ts';
import { SHUTDOWN, type Shutdown } from './life/shutdown.ts';
import { type Listeners, LISTENERS } from './sessions/listeners.ts';
import { checkStimulus } from './sessions/message-validation.ts';
import { type Stimuli, STIMULI } from './stimulus-queue.ts';
import { CLUSTER, INSIGHT } from './tokens.ts';

/** What the plugins of a scheduler can bring about in it. */
export class PluginGateway implements PluginHost {
  constructor(
    @inject(CLUSTER) readonly cluster: ClusterState,
    @inject(INSIGHT) readonly insight: Insight,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    @inject(LISTENERS) private readonly listeners: Listeners,
    @inject(COMMANDS) private readonly commands: Commands,
    @inject(PORTS_REPLACEMENT) private readonly ports: PortsReplacement,
    @inject(ERROR_REPORTS) private readonly errors: ErrorReports,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
  ) {}

  enqueue(stimulus: NewStimulus): void {
    checkStimulus(stimulus);
    this.stimuli.accept(stimulus);
  }

  connectLocal(from: string, open: (connection: Connection) => ConnectionHandlers): Connection {
    return this.listeners.connectLocal(from, open);
  }

  command(name: string, parameters: unknown, caller: Caller): unknown {
    return this.commands.run(name, parameters, caller);
  }

  setLanguages(languageOf: LanguageOf | undefined, only?: LanguageOf): void {
    if (only !== undefined && only !== this.cluster.languageOf) return;
    this.cluster.languageOf = languageOf;
  }

  portsChanged(): void {
    this.ports.request();
  }

  report(error: YardmasterError): void {
    this.errors.report(error);
  }

  close(): Promise<void> {
    return this.shutdown.close();
  }

  stopBecause(what: string, cause: unknown): void {
    this.shutdown.stopBecause(what, cause);
  }

  checkOpen(): void {
    this.shutdown.checkOpen();
  }
}
