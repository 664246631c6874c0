/**
 * Runs Vitest and counts its tests. Files with failed tests run once more, one after the other: on a small machine a test can
 * miss a time limit because of its neighbours. The second result counts, and what passed only then is named.
 * The last line is `N passed, N failed, N skipped`; FAILURES, where set, is a file that gets the names of what failed.
 *
 *   node .ci/run-tests.mjs npm test --
 *   node .ci/run-tests.mjs npx vitest run --config .config/vitest.config.ts test/some.test.ts
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** More files than these do not fail by chance: they are not repeated. */
const FILES_REPEATED_MAX = 10;
const VITEST = ['npx', 'vitest', 'run', '--config', '.config/vitest.config.ts'];

const scratch = mkdtempSync(join(tmpdir(), 'yardmaster-tests-'));

/** Runs a command with a report beside what it prints. Returns its exit status and the files of its report. */
function run([command, ...words], report) {
  const file = join(scratch, report);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const { status } = spawnSync(command, [...words, ...reporters], { stdio: 'inherit' });
  const files = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).testResults : [];
  return { status, files };
}

const failedTestsOf = (file) => file.assertionResults.filter(({ status }) => status === 'failed');

/** The names of what failed in a file; the file's own where it did not even load. */
function failuresOf(file) {
  const path = relative(process.cwd(), file.name);
  const failed = failedTestsOf(file).map(({ fullName }) => `${path}: ${fullName}`);
  return file.status === 'failed' && failed.length === 0 ? [path] : failed;
}

function count(files, ...statuses) {
  return files
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => statuses.includes(status)).length;
}

function report(title, names) {
  if (names.length === 0) return;
  console.log(`${title}\n${names.map((name) => `  ${name}`).join('\n')}`);
}

const first = run(process.argv.slice(2), 'first.json');
const failedFiles = first.files.filter((file) => failuresOf(file).length > 0);
let files = first.files;
if (failedFiles.length > 0 && failedFiles.length <= FILES_REPEATED_MAX) {
  report('=== failed, and run once more alone', failedFiles.flatMap(failuresOf));
  const paths = failedFiles.map(({ name }) => relative(process.cwd(), name));
  const again = run([...VITEST, '--no-file-parallelism', ...paths], 'again.json');
  const repeated = new Map(again.files.map((file) => [file.name, file]));
  files = files.map((file) => repeated.get(file.name) ?? file);
}
const failures = files.flatMap(failuresOf);
const before = failedFiles.flatMap(failuresOf);
report(
  '=== passed only when repeated',
  before.filter((name) => !failures.includes(name)),
);
// Errors outside of tests, such as a rejection that nothing handles, are in no test's result.
if (first.status !== 0 && before.length === 0) {
  failures.push(
    `${process.argv.slice(2).join(' ')} ended with ${first.status}, and no test failed`,
  );
}
report('=== failed', failures);
if (process.env.FAILURES && failures.length > 0) {
  appendFileSync(process.env.FAILURES, failures.map((name) => `${name}\n`).join(''));
}
rmSync(scratch, { recursive: true });
const skipped = count(files, 'pending', 'skipped', 'todo', 'disabled');
console.log(`${count(files, 'passed')} passed, ${failures.length} failed, ${skipped} skipped`);
process.exitCode = failures.length === 0 ? 0 : 1;
