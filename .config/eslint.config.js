import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const SANS_IO = ['core/kernel', 'core/worker', 'core/state', 'core/messages', 'core/util'].map(
  (folder) => `${folder}/**/*.ts`,
);

/** Globals of Node that the examples use. */
const NODE = [
  'AbortController',
  'AbortSignal',
  'Buffer',
  'TextDecoder',
  'TextEncoder',
  'URL',
].concat(['clearTimeout', 'fetch', 'performance', 'setTimeout', 'structuredClone']);

export default tseslint.config(
  { ignores: ['dist/**', 'docs/.vitepress/**', 'docs/**/*.ts', 'coverage/**', 'node_modules/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: `${import.meta.dirname}/..` },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/no-invalid-void-type': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/prefer-literal-enum-member': 'off',
      '@typescript-eslint/non-nullable-type-assertion-style': 'off',
      '@typescript-eslint/prefer-for-of': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/dot-notation': 'off',
      eqeqeq: 'error',
    },
  },
  {
    // `void promise` has no handler for its failure, which then ends the process: `inBackground` has one.
    files: ['adapters/**/*.ts', 'core/**/*.ts', 'plugins/**/*.ts', 'policies/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
      'no-restricted-syntax': [
        'error',
        { selector: 'TSEnumDeclaration', message: 'Use a union of strings.' },
      ],
    },
    linterOptions: { noInlineConfig: true },
  },
  {
    files: ['adapters/dashboard/page/**/*.ts'],
    languageOptions: { parserOptions: { project: './adapters/dashboard/page/tsconfig.json' } },
    rules: { '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: true }] },
  },
  {
    files: SANS_IO,
    rules: {
      'no-restricted-globals': [
        'error',
        ...[
          'Date',
          'setTimeout',
          'setInterval',
          'setImmediate',
          'queueMicrotask',
          'process',
          'console',
          'performance',
          'fetch',
        ].map((name) => ({ name, message: 'The kernel is a function: no clock, timer or I/O.' })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random', message: 'Results never depend on chance.' },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['**/*.cjs', '**/*.js', '.ci/*.mjs'],
    languageOptions: {
      globals: {
        module: 'writable',
        require: 'readonly',
        process: 'readonly',
        console: 'readonly',
      },
    },
  },
  {
    files: ['docs/examples/**/*.js'],
    languageOptions: { globals: Object.fromEntries(NODE.map((name) => [name, 'readonly'])) },
    // A parameter may be there to be read, or to be hashed.
    rules: { 'no-unused-vars': ['error', { args: 'none' }] },
  },
);
