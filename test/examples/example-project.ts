import { cpSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const ROOT = new URL('../..', import.meta.url).pathname;
/** Where the package is: this project, or what was packed and installed from it (`test/consumer`). */
const PACKAGE = process.env['YARDMASTER_PACKAGE'];
/** Only what was packed has its types. */
export const hasTypes = PACKAGE !== undefined;

/** A copy of an example in a folder of its own, which finds this package and others that the example uses. */
export function exampleProject(name: string, packages: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), `yardmaster-${name}-`));
  cpSync(join(ROOT, 'docs/examples', name), folder, { recursive: true });
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(PACKAGE ?? ROOT, join(folder, 'node_modules/yardmaster'));
  for (const other of packages) {
    const link = join(folder, 'node_modules', other);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', other), link);
  }
  return folder;
}
