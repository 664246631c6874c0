import { type History, unpackHistory } from '../../../report/history.ts';
import type { ReportData } from '../../../report/report-data.ts';
import { PrefixNumbers, streamWindow, TaskRecorder } from '../../task-recorder.ts';
import type { Row, Source, State, StreamWindow } from '../link.ts';

/** What the views of the dashboard ask for, from the figures of a report. */
export class RecordedLink implements Source {
  readonly state: State;
  readonly history: History;
  private readonly recorder: TaskRecorder;

  /** From the first action to the last one. */
  get range(): { readonly fromS: number; readonly toS: number } {
    const { fromS: beganS, toS: endedS } = this.history;
    const [fromS, toS] = this.recorder.range() ?? [beganS, endedS];
    return { fromS: fromS - 0.01, toS: toS + 0.01 };
  }

  constructor({ history: packed }: ReportData) {
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
    const rows = <T>(list: readonly T[], row: (item: T, number: number) => Row): Map<string, Row> =>
      new Map(list.map(row).map((one) => [one[0], one]));
    this.history = history;
    this.state = {
      ...{ nowS: toS, totals: {}, waiting: [], failures: { first: [], newest: [], count: 0 } },
      prefixes: rows(prefixes, (name, number) => [name, number]),
      workers: rows(workers, ({ address, name }) => [address, name]),
    };
  }

  stream(fromS: number, toS: number, width: number): Promise<StreamWindow> {
    const since = this.history.fromS;
    return Promise.resolve({ since, ...streamWindow(this.recorder, { fromS, toS, width }) });
  }
}
