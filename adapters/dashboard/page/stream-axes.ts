import { themed } from './colours.ts';
import { clock } from './format.ts';

/** Height of the times below the rows, and width of the names beside them, in pixels. */
export const AXIS = 22;
export const LEFT = 110;

/** The canvas of a task stream, and the time that it shows. */
export interface StreamPlot {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  readonly fromS: number;
  readonly toS: number;
}

/** Vertical lines at round times, with these below. */
export function drawTimes({ context, width, height, fromS, toS }: StreamPlot): void {
  context.font = '11px system-ui, sans-serif';
  context.fillStyle = themed('muted');
  context.strokeStyle = themed('line');
  context.textBaseline = 'middle';
  const spanS = toS - fromS;
  if (spanS <= 0) return;
  const rough = spanS / Math.max(2, Math.floor((width - LEFT) / 110));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough) ?? rough;
  const digits = Math.min(4, Math.ceil(-Math.log10(step)));
  for (let at = Math.ceil(fromS / step) * step; at < toS; at += step) {
    const x = LEFT + ((at - fromS) / spanS) * (width - LEFT);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS);
    context.stroke();
    const fraction = step < 1 ? (at % 1).toFixed(digits).slice(1) : '';
    context.textAlign = x > width - 40 ? 'right' : 'center';
    context.fillText(`${clock(at)}${fraction}`, x, height - AXIS / 2);
  }
}

/** A line at the moment that the other pages show. */
export function drawMoment(plot: StreamPlot, atS: number): void {
  const { context, width, height, fromS, toS } = plot;
  const x = LEFT + ((atS - fromS) / (toS - fromS)) * (width - LEFT);
  if (x < LEFT) return;
  context.strokeStyle = themed('text');
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height - AXIS);
  context.stroke();
}
