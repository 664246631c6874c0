/** A dump of the whole cluster into a file of the scheduler's machine. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import { stringify } from 'yaml';

import { encodeMessage } from '../../codec/index.ts';
import type { DaskContext, Fields } from '../../context.ts';
import { toPlain } from '../../codec/plain.ts';
import { PythonException } from '../py-errors.ts';
import { textIn } from '../../codec/values.ts';

/** Writes it where the URL says: `file://…` or a path, relative to where the scheduler was started. */
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
  const path = pathOf(textIn(request, 'url'));
  const state = toPlain(await stateOf(request, context));
  const bytes =
    format === 'yaml'
      ? Buffer.from(stringify(state, { aliasDuplicateObjects: false }))
      : await promisify(gzip)(encodeMessage(state)[0] as Uint8Array);
  await writeFile(path.endsWith(suffix) ? path : path + suffix, bytes);
  return null;
}

function pathOf(url: string): string {
  if (url.startsWith('file:///')) return fileURLToPath(url);
  if (url.startsWith('file://')) return url.slice('file://'.length);
  if (!url.includes('://')) return url;
  throw new PythonException(
    'NotImplementedError',
    `dump_cluster_state to ${url.split('://')[0] ?? ''}:// needs Python's fsspec in the scheduler; give a path or file://`,
  );
}
