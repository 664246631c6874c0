/**
 * Prints what the changelog says about a release.
 *
 *   node .ci/release-notes.mjs 0.1.0 [docs/changelog.md]
 */
import { readFileSync } from 'node:fs';

const [version = '', path = 'docs/changelog.md'] = process.argv.slice(2);
const sections = readFileSync(path, 'utf8').split(/^## /m).slice(1);
const section = sections.find(
  (text) => text.startsWith(`${version} `) || text.startsWith(`${version}\n`),
);
const [heading = '', ...lines] = section?.split('\n') ?? [];
if (version === '' || section === undefined) fail(`${path} has no heading "## ${version} (date)"`);
else if (!/\(\d{4}-\d{2}-\d{2}\)$/.test(heading)) {
  fail(
    `${path} says "${heading}": write the day of the release, such as (2027-01-31), in its place`,
  );
} else console.log(lines.join('\n').trim());

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}
