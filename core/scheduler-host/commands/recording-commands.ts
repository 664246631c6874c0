import { token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { RECORDER, type SchedulerRecorder } from '../recorder.ts';
import { builtin, type BuiltinCommand } from './builtin-parameters.ts';

export const RECORDING_COMMANDS: Token<RecordingCommands> = token('recording-commands');

/** Commands that begin and end a recording of the scheduler while it runs. */
export class RecordingCommands {
  readonly commands: readonly BuiltinCommand[];

  constructor(@inject(RECORDER) recorder: SchedulerRecorder) {
    this.commands = [
      builtin('start-recording', ({ name }) => recorder.start(name)),
      builtin('stop-recording', () => recorder.stop()),
      builtin('recording', () => recorder.current ?? null),
    ];
  }
}
