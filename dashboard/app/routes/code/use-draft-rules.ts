import { useState } from 'react';
import { type DraftRule, newRule, type TargetDraft } from './policy-draft.ts';

interface DraftRulesOptions {
  readonly draft: TargetDraft;
  readonly setDraft: (draft: TargetDraft) => void;
  /** Called when rules or variants change their positions, by which the core names them in its errors. */
  readonly onMoved: () => void;
}

interface DraftRules {
  /** The fields of dates that were typed in part when the form was sent, until a rule changes. */
  readonly unfinished: readonly string[];
  readonly setUnfinished: (fields: readonly string[]) => void;
  readonly add: () => void;
  readonly replace: (index: number, rule: DraftRule) => void;
  /** `to`: the new index. */
  readonly move: (index: number, to: number) => void;
  readonly remove: (index: number) => void;
}

/** Changes the rules of a target that is being edited. */
export function useDraftRules({ draft, setDraft, onMoved }: DraftRulesOptions): DraftRules {
  const [unfinished, setUnfinished] = useState<readonly string[]>([]);
  const set = (rules: readonly DraftRule[], isMoved = true) => {
    if (isMoved) onMoved();
    setUnfinished([]);
    setDraft({ ...draft, rules });
  };
  return {
    unfinished,
    setUnfinished,
    add: () => setDraft({ ...draft, rules: [...draft.rules, newRule()] }),
    replace(index, rule) {
      set(draft.rules.with(index, rule), rule.variants.length !== draft.rules[index]?.variants.length);
    },
    move(index, to) {
      const rules = [...draft.rules];
      rules.splice(to, 0, ...rules.splice(index, 1));
      set(rules);
    },
    remove: (index) => set(draft.rules.toSpliced(index, 1)),
  };
}
