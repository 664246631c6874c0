export { python, pythonCallOf, type PythonCall } from './function.ts';
export {
  arrow,
  dtypeOf,
  isMarked,
  keywords,
  MARK,
  ndarray,
  type ArrowStream,
  type DType,
  type Keywords,
  type NdArray,
  type TypedArray,
} from './values.ts';
