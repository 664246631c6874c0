/**
 * The span within which the program is now, when it uses OpenTelemetry, as the W3C writes it. All copies of its API in a
 * process share one object under this symbol, and keep the active span under the other: nothing is loaded for it here.
 */
const API = Symbol.for('opentelemetry.js.api.1');
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');

interface SharedApi {
  readonly context?: {
    active(): { getValue(key: symbol): { spanContext(): SpanContext } | undefined };
  };
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** `00-TRACE-SPAN-FLAGS`; undefined outside of spans. */
export function traceParent(): string | undefined {
  const api = (globalThis as { readonly [API]?: SharedApi })[API];
  const span = api?.context?.active().getValue(SPAN);
  if (span === undefined) return undefined;
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
