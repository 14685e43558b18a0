import type { LucideIcon } from 'lucide-react';

/** What a menu offers. */
export interface MenuAction {
  readonly id: string;
  readonly label: string;
  readonly icon?: LucideIcon | undefined;
  readonly isDanger?: boolean | undefined;
  readonly isDisabled?: boolean | undefined;
  readonly onAction: () => void;
}
