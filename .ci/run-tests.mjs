/**
 * Runs Vitest and counts its tests. The last line is `N passed, N failed, N skipped`; FAILURES, where set, is a file that gets the
 * names of what failed, and how it failed.
 *
 *   node .ci/run-tests.mjs npx vitest run --config .config/vitest.config.ts test/some.test.ts
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const scratch = mkdtempSync(join(tmpdir(), 'yardmaster-tests-'));
const report = join(scratch, 'report.json');
const [command, ...words] = process.argv.slice(2);
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
const { status } = spawnSync(command, [...words, ...reporters], { stdio: 'inherit' });
const files = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : [];
rmSync(scratch, { recursive: true });

/** Characters of a failure's message that are repeated after its name. */
const SHOWN_MAX = 1500;

/** The names of what failed in a file, with how it failed; the file's own where it did not even load. */
function failuresOf({ name, status, message, assertionResults }) {
  const path = relative(process.cwd(), name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && failed.length === 0) return [`${path}${shown(message)}`];
  return failed.map(
    ({ fullName, failureMessages }) => `${path}: ${fullName}${shown(failureMessages.join('\n'))}`,
  );
}

/** Without the frames of libraries. */
function shown(message) {
  const lines = message.split('\n').filter((line) => line.trim() && !line.includes('node_modules'));
  return lines.join('\n').slice(0, SHOWN_MAX).replaceAll(/^/gm, '    ').replace(/^/, '\n');
}

function count(...statuses) {
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  return tests.filter((test) => statuses.includes(test.status)).length;
}

const failures = files.flatMap(failuresOf);
// Errors outside of tests, such as a rejection that nothing handles, are in no test's result.
if (status !== 0 && failures.length === 0) {
  failures.push(`${process.argv.slice(2).join(' ')} ended with ${status}, and no test failed`);
}
if (failures.length > 0)
  console.log(`=== failed\n${failures.map((name) => `  ${name}`).join('\n')}`);
if (process.env.FAILURES && failures.length > 0) {
  appendFileSync(process.env.FAILURES, failures.map((name) => `${name}\n`).join(''));
}
const skipped = count('pending', 'skipped', 'todo', 'disabled');
console.log(`${count('passed')} passed, ${failures.length} failed, ${skipped} skipped`);
process.exitCode = failures.length === 0 ? 0 : 1;
