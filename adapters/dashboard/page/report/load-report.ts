import type { ReportData } from '../../../report/report-data.ts';

/** The figures that stand in the page, packed. */
export async function loadReport(): Promise<ReportData> {
  const text = document.getElementById('data')?.textContent ?? '""';
  const packed = atob(JSON.parse(text) as string);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(unpacked).json()) as ReportData;
}
