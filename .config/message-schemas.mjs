/**
 * Derives the JSON schemas of all messages that a scheduler checks from their TypeScript types. A test
 * compares them with `core/messages/messages.schema.json`; `.config/compile-schemas.mjs` compiles that file.
 *
 * - A field is required unless it is optional, of the type `unknown`, or the `stimulusId`, which the
 *   host adds.
 * - Fields that a type does not list are allowed, because a newer peer may send more.
 * - `@integer`, `@minimum`, `@maximum` and `@minLength` in the comment of an alias
 *   (`core/util/values.ts`) bound the values of the fields of this type.
 */
import { fileURLToPath, URL } from 'node:url';
import ts from 'typescript';

const FOLDER = fileURLToPath(new URL('../core/messages/', import.meta.url));

/** Where the types of checked messages are, and how messages are named in errors. */
const ROOTS = [
  { file: 'from-worker.ts', type: 'WorkerReport', prefix: 'worker message' },
  { file: 'from-client.ts', type: 'ClientMessage', prefix: 'client message' },
  { file: 'protocol.ts', type: 'SchedulerRequests', prefix: 'request' },
  { file: 'stimulus.ts', type: 'Stimulus', prefix: 'stimulus' },
];

const KEYWORDS = {
  [ts.SyntaxKind.StringKeyword]: { type: 'string' },
  [ts.SyntaxKind.NumberKeyword]: { type: 'number' },
  [ts.SyntaxKind.BooleanKeyword]: { type: 'boolean' },
  [ts.SyntaxKind.UnknownKeyword]: {},
};

const TAGS = {
  integer: () => ({ type: 'integer' }),
  minimum: (text) => ({ minimum: Number(text) }),
  maximum: (text) => ({ maximum: Number(text) }),
  minLength: (text) => ({ minLength: Number(text) }),
  maxItems: (text) => ({ maxItems: Number(text) }),
  maxProperties: (text) => ({ maxProperties: Number(text) }),
};

/** One JSON schema, whose `definitions` have the schema of each message under its name in errors. */
export function messageSchemas() {
  const program = ts.createProgram(
    ROOTS.map(({ file }) => FOLDER + file),
    {
      noEmit: true,
      strict: true,
      allowImportingTsExtensions: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      types: [],
    },
  );
  const schemas = new Schemas(program.getTypeChecker());
  for (const { file, type, prefix } of ROOTS) {
    for (const [name, message] of messagesOf(program, FOLDER + file, type)) {
      schemas.definitions[`${prefix} ${name}`] = schemas.ofMessage(message, schemas.ofReport(name));
    }
  }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Messages that a Yardmaster scheduler receives',
    definitions: schemas.definitions,
  };
}

/** The members of a union by their `op`, or the fields of an interface by name. */
function messagesOf(program, file, name) {
  const checker = program.getTypeChecker();
  const source = checker.getSymbolAtLocation(program.getSourceFile(file));
  const symbol = checker.getExportsOfModule(source).find((one) => one.name === name);
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  if (!type.isUnion()) {
    return type.getProperties().map((field) => [field.name, checker.getTypeOfSymbol(field)]);
  }
  return type.types.map((member) => {
    return [checker.getTypeOfSymbol(member.getProperty('op')).value, member];
  });
}

class Schemas {
  definitions = {};

  constructor(checker) {
    this.checker = checker;
  }

  /** What a worker or a client sends, of which a stimulus of the same `op` is made. */
  ofReport(op) {
    const { definitions } = this;
    return definitions[`worker message ${op}`] ?? definitions[`client message ${op}`];
  }

  /** @param report - whose fields are left out: a stimulus is checked as a report as well */
  ofMessage(type, report) {
    // `Omit<…>` has a comment of its own: the one of the interface is where `op` is declared.
    const { parent } = type.getProperty('op')?.declarations[0] ?? {};
    const declared = parent === undefined ? type.symbol : parent.symbol;
    return { ...this.#description(declared), ...this.#ofObject(type, report) };
  }

  #ofObject(type, without) {
    const fields = type
      .getProperties()
      .filter(({ name }) => !(name in (without?.properties ?? {})));
    const properties = fields.map((field) => [field.name, this.#ofField(field)]);
    const required = fields.filter((field) => this.#isRequired(field)).map(({ name }) => name);
    return { type: 'object', required, properties: Object.fromEntries(properties) };
  }

  #isRequired(field) {
    return (
      (field.flags & ts.SymbolFlags.Optional) === 0 &&
      field.name !== 'stimulusId' &&
      field.declarations[0].type.kind !== ts.SyntaxKind.UnknownKeyword
    );
  }

  #ofField(field) {
    return { ...this.#ofNode(field.declarations[0].type), ...this.#description(field) };
  }

  #ofNode(node) {
    const known = KEYWORDS[node.kind];
    if (known !== undefined) return known;
    if (
      ts.isTypeOperatorNode(node) ||
      ts.isParenthesizedTypeNode(node) ||
      ts.isNamedTupleMember(node)
    )
      return this.#ofNode(node.type);
    if (ts.isArrayTypeNode(node)) return { type: 'array', items: this.#ofNode(node.elementType) };
    if (ts.isLiteralTypeNode(node)) return { type: 'string', const: node.literal.text };
    if (ts.isTypeLiteralNode(node)) return this.#ofObject(this.checker.getTypeFromTypeNode(node));
    if (ts.isUnionTypeNode(node)) {
      return { type: 'string', enum: node.types.map((member) => this.#ofNode(member).const) };
    }
    if (ts.isTupleTypeNode(node)) {
      const items = node.elements.map((element) => this.#ofNode(element));
      return { type: 'array', minItems: items.length, maxItems: items.length, items };
    }
    if (ts.isTypeReferenceNode(node)) return this.#ofReference(node);
    throw new Error(`no schema for the type ${node.getText()}`);
  }

  #ofReference(node) {
    const name = node.typeName.getText();
    if (name === 'Readonly') return this.#ofNode(node.typeArguments[0]);
    if (name === 'Record') {
      return { type: 'object', additionalProperties: this.#ofNode(node.typeArguments[1]) };
    }
    if (name === 'Uint8Array') return { bytes: true };
    const named = this.checker.getSymbolAtLocation(node.typeName);
    const symbol =
      (named.flags & ts.SymbolFlags.Alias) === 0 ? named : this.checker.getAliasedSymbol(named);
    const [declaration] = symbol.declarations;
    if (ts.isTypeAliasDeclaration(declaration)) {
      return { ...this.#ofNode(declaration.type), ...this.#bounds(symbol) };
    }
    this.definitions[name] ??= this.ofMessage(this.checker.getDeclaredTypeOfSymbol(symbol));
    return { $ref: `#/definitions/${name}` };
  }

  #description(symbol) {
    const text = ts.displayPartsToString(symbol?.getDocumentationComment(this.checker));
    return text === '' ? {} : { description: text.replaceAll('\n', ' ') };
  }

  /** What the comment of an alias says about values. */
  #bounds(alias) {
    const tags = alias
      .getJsDocTags()
      .map(({ name, text }) => TAGS[name]?.(ts.displayPartsToString(text)));
    return Object.assign({}, ...tags);
  }
}
