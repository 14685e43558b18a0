import { discardEntered } from './entered.ts';
import { queryClient } from './queries.ts';
import { isOpeningAnew, sessionQuery } from './session.ts';

/**
 * Watches for a page that Back shows as the browser kept it: reads its session again, which may have ended since, or
 * loads it anew if it was left for another account or person.
 */
export function watchRestoredPages(): void {
  window.addEventListener('pagehide', () => {
    if (isOpeningAnew()) document.body.hidden = true;
  });
  window.addEventListener('pageshow', ({ persisted }) => {
    if (!persisted) return;
    if (!isOpeningAnew()) return void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    discardEntered();
    location.reload();
  });
}
