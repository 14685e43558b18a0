import { lazy, type ReactNode, Suspense, useRef, useState } from 'react';
import { ButtonContext } from 'react-aria-components';
import type { MenuAction } from './menu-action.ts';

/** Loaded when a menu is about to be opened: with the overlays of React Aria it is 32 KB compressed. */
const loadList = () => import('./menu-list.tsx');
const MenuList = lazy(loadList);

/** A button, the only child, that opens a list of actions. */
export function Menu({
  label,
  actions,
  children,
}: {
  label: string;
  actions: readonly MenuAction[];
  children: ReactNode;
}) {
  const trigger = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const load = () => void loadList();
  return (
    <>
      <ButtonContext
        value={{
          ref: trigger,
          onPress: () => setOpen(true),
          onHoverStart: load,
          onFocus: load,
          'aria-haspopup': 'menu',
          'aria-expanded': isOpen,
        }}
      >
        {children}
      </ButtonContext>
      {isOpen && (
        <Suspense>
          <MenuList label={label} actions={actions} trigger={trigger} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
