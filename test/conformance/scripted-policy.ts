import {
  ActiveMemoryManagerPolicy,
  type Suggestion,
  type SuggestionGenerator,
} from '../../core/api/index.ts';

/** Suggests what it is told to. */
export class ScriptedPolicy extends ActiveMemoryManagerPolicy<readonly Suggestion[]> {
  override *run(): SuggestionGenerator {
    yield* this.options;
  }
}
