import { calibrate } from '../../../simulator/index.ts';
import { sizeText } from '../../text-table.ts';
import { say } from '../../terminal.ts';

/** Flags of `lab calibrate`. */
export interface CalibrateFlags {
  readonly json?: boolean;
}

/** `yardmaster lab calibrate`. */
export async function calibrateCommand(file: string, { json }: CalibrateFlags): Promise<number> {
  const { fitted, graphs, tasks, realS, simulatedS, error } = await calibrate(file);
  if (json === true) {
    const shown = { ...fitted, graphs, tasks, realS, simulatedS, error };
    say(`${JSON.stringify(shown, undefined, 2)}\n`);
    return 0;
  }
  const { threads, bandwidth, latencyMs, overheadMs, startMs } = fitted;
  const total = threads.reduce((sum, count) => sum + count, 0);
  const lines = [
    `${file}: ${tasks} tasks of ${graphs} graph(s), ${threads.length} workers with ${total} threads`,
    `bandwidth         ${bandwidth === undefined ? 'no transfer was measured' : `${sizeText(bandwidth)}/s`}`,
    `latency           ${latencyMs === undefined ? 'no task shows it' : `${latencyMs.toFixed(2)} ms a message`}`,
    `overhead          ${overheadMs.toFixed(2)} ms a task`,
    `start             ${startMs.toFixed(0)} ms until the first task begins`,
    `real makespan     ${realS.toFixed(3)} s`,
    `simulated         ${simulatedS.toFixed(3)} s, ${signed(100 * error)} %`,
    ...(graphs > 1 ? ['All graphs were simulated as if they had been submitted at once.'] : []),
  ];
  say(`${lines.join('\n')}\n`);
  return 0;
}

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(1)}`;
}
