import { pythonCallOf } from '../python/index.ts';
import { isPythonTask } from '../bridge/translate-to-worker.ts';

/** The language of a task: clients of Dask submit Python, those of Node what they name. */
export function languageOf(runSpec: unknown): string {
  const isPython = isPythonTask(runSpec) || pythonCallOf(runSpec) !== undefined;
  return isPython ? 'python' : 'javascript';
}
