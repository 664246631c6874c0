/** A dump of the whole cluster into a file of the scheduler's machine. */
import { lstat, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import { stringify } from 'yaml';

import { encodeMessage } from '../../codec/index.ts';
import type { DaskContext, Fields } from '../../context.ts';
import { toPlain } from '../../codec/plain.ts';
import { PythonException } from '../py-errors.ts';
import { textIn } from '../../codec/values.ts';

/** Writes it where the URL says, below the folder for that: `file://…`, or a path relative to the folder. */
export async function dumpToUrl(
  request: Fields,
  context: DaskContext,
  stateOf: (request: Fields, context: DaskContext) => Promise<Fields>,
): Promise<null> {
  const { format = 'msgpack' } = request;
  if (format !== 'msgpack' && format !== 'yaml') {
    throw new PythonException(
      'ValueError',
      `Unsupported format ${JSON.stringify(format)}. Possible values are 'msgpack' or 'yaml'.`,
    );
  }
  const suffix = format === 'yaml' ? '.yaml' : '.msgpack.gz';
  const named = pathOf(textIn(request, 'url'));
  const folder = context.options.dumpFolder ?? process.cwd();
  const path = await placeOf(named.endsWith(suffix) ? named : named + suffix, folder);
  const state = toPlain(await stateOf(request, context));
  const bytes =
    format === 'yaml'
      ? Buffer.from(stringify(state, { aliasDuplicateObjects: false }))
      : await promisify(gzip)(encodeMessage(state)[0] as Uint8Array);
  await writeFile(path, bytes);
  return null;
}

/** Where a dump is written. Symbolic links lead nowhere else. */
async function placeOf(named: string, folder: string): Promise<string> {
  const wanted = resolve(folder, named);
  const [parent, within] = await Promise.all([realpath(dirname(wanted)), realpath(folder)]).catch(
    (cause: unknown) => {
      throw new PythonException('OSError', (cause as Error).message);
    },
  );
  const path = join(parent, basename(wanted));
  const isLink = await lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
  const [first] = relative(within, path).split(sep);
  if (!isLink && first !== '..' && first !== '') return path;
  throw new PythonException(
    'OSError',
    `the scheduler writes dumps below ${within} only, not to ${path}; its operator can name another folder (option dumpFolder of the plugin "dask")`,
  );
}

function pathOf(url: string): string {
  if (url.startsWith('file:///')) return fileURLToPath(url);
  if (url.startsWith('file://')) return url.slice('file://'.length);
  return url;
}

/** Whether only Python's fsspec can write there: it is neither a path nor `file://`. */
export function needsFsspec(url: unknown): boolean {
  return typeof url === 'string' && /^(?!file:)[\w+.-]+(::|:\/\/)/.test(url);
}
