/** Every option of what a configuration can name is explained in a document. */
import { expect, it } from 'vitest';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import { filesIn } from '../../tidy/source-files.ts';

interface Extension {
  readonly optionsSchema?: { readonly properties?: Readonly<Record<string, unknown>> };
}

const documents = filesIn('docs', '.md').map(({ text }) => text);

/** An option may also be a key of the configuration, which carries no unit in its name. */
function isExplained(option: string): boolean {
  const key = option.replace(/(?:Ms|Bytes)$/, '');
  const names = [`\`${option}\``, `\`${option}:`, `.${option}\``, `.${key}\``];
  return documents.some((text) => names.some((name) => text.includes(name)));
}

it.each(Object.entries(builtins))('the options of %s are in a document', async (name, load) => {
  const { optionsSchema } = (await load()) as Extension;
  const missing = Object.keys(optionsSchema?.properties ?? {}).filter((one) => !isExplained(one));
  expect(missing).toEqual([]);
  const short = name.replace(/^\w+\//, '');
  expect(documents.some((text) => text.includes(`\`${short}\``))).toBe(true);
});

it('an option that no document explains is noticed', () => {
  expect(['workerSaturation', 'noSuchOption'].filter(isExplained)).toEqual(['workerSaturation']);
});
