import { type History, unpackHistory } from '../../../report/history.ts';
import type { ReportData } from '../../../report/report-data.ts';
import { PrefixNumbers, streamWindow, TaskRecorder } from '../../task-recorder.ts';
import type { StreamPart, StreamSource } from '../link.ts';

/** Serves the task stream from the figures of a report. */
export class RecordedLink implements StreamSource {
  readonly state: StreamSource['state'];
  readonly history: History;
  private readonly recorder: TaskRecorder;

  /** From the first action to the last one. */
  get range(): { readonly fromS: number; readonly toS: number } {
    const { fromS: beganS, toS: endedS } = this.history;
    const { fromS, toS } = this.recorder.range() ?? { fromS: beganS, toS: endedS };
    return { fromS: fromS - 0.01, toS: toS + 0.01 };
  }

  constructor({ history: packed }: Pick<ReportData, 'history'>) {
    const history = unpackHistory(packed);
    const { prefixes, workers, runs, toS } = history;
    const numbers = new PrefixNumbers();
    for (const name of prefixes) numbers.of(name);
    const capacity = runs.reduce((sum, { timings }) => sum + timings.length, 1);
    this.recorder = new TaskRecorder(capacity, numbers);
    for (const { key, prefix, worker: number, timings, isError } of runs) {
      const worker = workers[number]?.address ?? '';
      this.recorder.add(key, prefixes[prefix] ?? '', { worker, timings, isError });
    }
    this.history = history;
    this.state = {
      nowS: toS,
      prefixes: new Map(prefixes.map((name, number) => [name, { name, number }])),
      workers: new Map(workers.map((worker) => [worker.address, worker])),
    };
  }

  stream(fromS: number, toS: number, width: number): Promise<StreamPart> {
    const sinceS = this.history.fromS;
    return Promise.resolve({ sinceS, ...streamWindow(this.recorder, { fromS, toS, width }) });
  }
}
