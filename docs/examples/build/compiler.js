/** Compiles single files with TypeScript: for a cluster (`main.js`) and for a pool (`plain.js`). */
import ts from 'typescript';

const OPTIONS = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2022,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  strict: true,
  isolatedDeclarations: true,
  declaration: true,
  removeComments: true,
  noLib: true,
  types: [],
};
/** As much of the library as the units use; the whole takes half a second for each. */
const LIBRARY = `interface Array<T> { [index: number]: T; reduce(add: (sum: T, part: T) => T, start: T): T }
interface Boolean {} interface CallableFunction {} interface Function {} interface IArguments {}
interface NewableFunction {} interface Number {} interface Object {} interface RegExp {} interface String {}`;

/** The files that a source imports. */
export function importsOf(source) {
  return ts.preProcessFile(source).importedFiles.map(({ fileName }) => fileName.slice(2, -3));
}

/** The types that a source exports. */
export function declare({ name, source }) {
  return ts.transpileDeclaration(source, { fileName: `${name}.ts`, compilerOptions: OPTIONS })
    .outputText;
}

/** JavaScript, after a check of the types against the declarations of what it imports, by name. */
export function compile({ name, source, types }) {
  const files = new Map([
    ['/lib.d.ts', LIBRARY],
    [`/${name}.ts`, source],
  ]);
  for (const [other, text] of Object.entries(types)) files.set(`/${other}.d.ts`, text);
  let output = '';
  const program = ts.createProgram([...files.keys()], OPTIONS, {
    fileExists: (path) => files.has(path),
    readFile: (path) => files.get(path),
    getSourceFile: (path, options) =>
      files.has(path) ? ts.createSourceFile(path, files.get(path), options) : undefined,
    getDefaultLibFileName: () => '/lib.d.ts',
    getCurrentDirectory: () => '/',
    getCanonicalFileName: (path) => path,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    writeFile: (path, text) => {
      if (path === `/${name}.js`) output = text;
    },
  });
  const problems = ts.getPreEmitDiagnostics(program);
  if (problems.length > 0)
    throw new Error(`${name}: ${ts.flattenDiagnosticMessageText(problems[0].messageText, ' ')}`);
  program.emit();
  return output;
}
