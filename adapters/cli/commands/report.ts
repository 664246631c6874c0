import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { type RecordedHistory, recordingHistory } from '../../app/recording/recording-history.ts';
import { printableLines } from '../../app/printable.ts';
import { type Report, reportOf } from '../../report/index.ts';

/** Flags of `report`. */
export interface ReportFlags {
  readonly output?: string;
  readonly json?: boolean;
}

/** `yardmaster report`. */
export async function reportCommand(file: string, flags: ReportFlags): Promise<number> {
  const recorded = await recordingHistory(file);
  const report = reportOf(recorded.history);
  if (flags.json === true) {
    const { summary, findings, analysis } = report;
    process.stdout.write(`${JSON.stringify({ summary, findings, ...analysis }, undefined, 2)}\n`);
    return 0;
  }
  const output = resolve(flags.output ?? file.replace(/(\.ylog)?$/, '.html'));
  await writeReport(output, basename(file), recorded, report);
  process.stdout.write(`${printableLines(reportText(report))}\n\nwritten to ${output}\n`);
  return 0;
}

/** Writes the page of a recording. */
export async function writeReport(
  output: string,
  title: string,
  { header, difference, damage }: RecordedHistory,
  report: Report,
): Promise<void> {
  const notes = [
    ...(difference === undefined
      ? []
      : [
          `This version decides otherwise than the one that recorded it, from frame ${difference.sequence} on: the figures of what follows are not reliable.`,
        ]),
    ...(damage === undefined ? [] : [`${damage.message}; what comes before it is in this report.`]),
  ];
  const { html } = await import('../../report/report-html.ts');
  await writeFile(output, await html(report, { title, createdAtMs: header.createdAtMs, notes }));
}

function reportText({ summary, findings }: Report): string {
  const found = findings.flatMap(({ title, text, remedy }, index) => [
    `${index + 1}. ${title}`,
    `   ${text}`,
    `   ${remedy}`,
  ]);
  return [...summary, '', ...(found.length === 0 ? ['Nothing stands out.'] : found)].join('\n');
}
