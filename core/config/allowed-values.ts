/** Puts into words which values a JSON schema allows. */
import { show } from '../shared/words.ts';

interface ValueSchema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly ValueSchema[];
  readonly oneOf?: readonly ValueSchema[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
}

/** `a number above 0 or "inf"`; undefined when the schema says too much for a few words. */
export function allowedValues(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { anyOf, oneOf, enum: values, type } = schema as ValueSchema;
  const alternatives = anyOf ?? oneOf;
  if (alternatives !== undefined) return oneOfThese(alternatives.map(allowedValues));
  if ('const' in schema) return show(schema.const);
  if (values !== undefined) return oneOfThese(values.map(show));
  if (type === undefined) return undefined;
  const types = (typeof type === 'string' ? [type] : type).filter((name) => name !== 'null');
  return oneOfThese(types.map((name) => withArticle(name) + limits(name, schema)));
}

function oneOfThese(texts: readonly (string | undefined)[]): string | undefined {
  return texts.some((text) => text === undefined) ? undefined : texts.join(' or ');
}

function withArticle(type: string): string {
  return `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
}

function limits(type: string, schema: ValueSchema): string {
  if (type !== 'number' && type !== 'integer') return '';
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  const texts: string[] = [];
  if (minimum !== undefined) texts.push(`of at least ${minimum}`);
  if (exclusiveMinimum !== undefined) texts.push(`above ${exclusiveMinimum}`);
  if (maximum !== undefined) texts.push(`at most ${maximum}`);
  if (exclusiveMaximum !== undefined) texts.push(`below ${exclusiveMaximum}`);
  return texts.length === 0 ? '' : ` ${texts.join(' and ')}`;
}
