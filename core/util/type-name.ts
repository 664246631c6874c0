/** What people call the type of a value: `number`, `Array`, `Map`, the name of its class. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null) return 'Object';
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  const name: unknown = typeof maker === 'function' ? maker.name : '';
  return typeof name === 'string' && name !== '' ? wellFormed(name) : 'Object';
}

/** A class may have any name; it becomes part of keys, which are sent. */
function wellFormed(name: string): string {
  return name.replace(/\p{Surrogate}/gu, '\uFFFD');
}
