/** Runs in the threads of the laboratory: makes the runs that it is sent, one at a time. */
import { parentPort } from 'node:worker_threads';
import { YardmasterError } from '../../../core/api/index.ts';
import { type LabAnswer, measure, type RunRequest } from './runs.ts';

parentPort?.on('message', (request: RunRequest) => {
  measure(request).then(
    (result) => parentPort?.postMessage({ result } satisfies LabAnswer),
    (error: unknown) => {
      const code = YardmasterError.is(error) ? error.code : undefined;
      const message = error instanceof Error ? error.message : String(error);
      parentPort?.postMessage({ code, message } satisfies LabAnswer);
    },
  );
});
