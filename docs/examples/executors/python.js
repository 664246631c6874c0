const PYTHON = Symbol.for('example.python');

/** What a task returns for Python to do: source that assigns to `result`, and its variables, which JSON can hold. */
export function python(source, variables = {}) {
  return { [PYTHON]: true, source, variables };
}

export function isPython(value) {
  return typeof value === 'object' && value !== null && PYTHON in value;
}
