import {
  ActiveMemoryManagerPolicy,
  type Suggestion,
  type SuggestionGenerator,
} from '../../core/api/index.ts';

/** Makes the suggestions of a script. */
export class ScriptedPolicy extends ActiveMemoryManagerPolicy<readonly Suggestion[]> {
  override *run(): SuggestionGenerator {
    yield* this.options;
  }
}
