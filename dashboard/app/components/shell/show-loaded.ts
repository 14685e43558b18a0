import { errorText } from '../../data/error-text.ts';
import { language } from '../../data/preferences.ts';
import { showToast } from '../../data/toasts.ts';
import { loadFirstMessages } from '../../messages/index.ts';

const loaded = new WeakSet<() => Promise<unknown>>();

/**
 * Shows what files contain once they are loaded; from the second time on at once, so that no key is typed too early. A
 * failure is a message: it must not replace a page with what was entered.
 */
export async function showLoaded(load: () => Promise<unknown>, show: () => void): Promise<void> {
  try {
    if (!loaded.has(load)) await load();
    loaded.add(load);
    show();
  } catch (error) {
    showToast(errorText(error, await loadFirstMessages(language())), { kind: 'failed' });
  }
}
