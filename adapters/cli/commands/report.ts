import { writeFile } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import { JOURNAL_NOTE, type RecordedHistory, recordingHistory } from '../../app/past.ts';
import type { Explanation } from '../../dashboard/page-messages.ts';
import { printableLines } from '../../../core/util/values.ts';
import { type Report, reportOf, scheduleOf } from '../../report/index.ts';
import type { ReportTitle } from '../../report/report-html.ts';
import { checkOutput } from '../command-line.ts';
import { say } from '../terminal.ts';

const UNRELIABLE_CODE = 1;

export interface ReportFlags {
  readonly output?: string;
  readonly json?: boolean;
  readonly allowPolicies?: boolean;
}

export async function reportCommand(file: string, flags: ReportFlags): Promise<number> {
  checkOutput(flags.output, file);
  const recorded = await recordingHistory(file, { allowPolicies: flags.allowPolicies === true });
  const report = reportOf(recorded.history);
  const notes = notesOf(recorded);
  const code = notes.length === 0 ? 0 : UNRELIABLE_CODE;
  if (flags.json === true) {
    const { summary, findings, analysis } = report;
    const shown = { notes, summary, findings, ...analysis };
    say(`${JSON.stringify(shown, undefined, 2)}\n`);
    return code;
  }
  const output = resolve(flags.output ?? file.replace(/(\.ylog)?$/, '.html'));
  const { version, createdAtMs, config } = recorded.header;
  const title = { title: basename(file), createdAtMs, notes };
  await writeReport(output, title, report, { version, createdAtMs, notes, config });
  const text = [...notes, ...(notes.length === 0 ? [] : ['']), reportText(report)].join('\n');
  say(`${printableLines(text)}\n\nwritten to ${output}\n`);
  return code;
}

/**
 * Writes the page of a report; or, into a file that ends in `.json`, the schedule that was carried out.
 * @param about - facts that the schedule begins with
 */
export async function writeReport(
  output: string,
  title: ReportTitle,
  report: Report,
  about: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (extname(output) === '.json') {
    const text = JSON.stringify({ ...about, schedule: scheduleOf(report.history) }, undefined, 2);
    await writeFile(output, `${text}\n`);
    return;
  }
  const { html } = await import('../../report/report-html.ts');
  await writeFile(output, await html(report, title));
}

/** The reasons why the figures cannot be relied upon. */
function notesOf({ header, difference, damage }: RecordedHistory): string[] {
  return [
    ...(header.holds === 'requests' ? [JOURNAL_NOTE] : []),
    ...(difference === undefined
      ? []
      : [
          `This version decides otherwise than the one that recorded it, from frame ${difference.sequence} on: the figures of what follows are not reliable.`,
        ]),
    ...(damage === undefined ? [] : [`${damage.message}; what comes before it is in this report.`]),
  ];
}

/** The findings with their remedies below the summary. */
export function reportText({ summary, findings }: Explanation): string {
  const found = findings.flatMap(({ title, cost, text, remedy }, index) => [
    `${index + 1}. ${title}${cost === '' ? '' : ` (${cost})`}`,
    `   ${text}`,
    `   ${remedy}`,
  ]);
  return [...summary, '', ...(found.length === 0 ? ['Nothing stands out.'] : found)].join('\n');
}
