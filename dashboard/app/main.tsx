import './styles/tokens.css';
import './styles/base.css';
import { TransportProvider } from '@connectrpc/connect-query';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { I18nProvider } from 'react-aria-components';
import { createRoot } from 'react-dom/client';
import { watchFiles } from './data/missing-files.ts';
import { apply, language, useLanguage } from './data/preferences.ts';
import { queryClient } from './data/queries.ts';
import { watchRestoredPages } from './data/restored-pages.ts';
import { sessionQuery } from './data/session.ts';
import { transport } from './data/transport.ts';
import { showLoadFailed } from './load-failed.ts';
import { loadFirstMessages } from './messages/index.ts';
import { router } from './router.tsx';

/** The application, in the reader's language. */
function App() {
  return (
    <I18nProvider locale={useLanguage()}>
      <TransportProvider transport={transport}>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </TransportProvider>
    </I18nProvider>
  );
}

apply();
watchFiles();
watchRestoredPages();
const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root.');
// Both are needed before anything can be shown, so neither waits for the other.
void queryClient.prefetchQuery(sessionQuery);
const load = () => loadFirstMessages(language());
await load()
  .catch(load)
  .then(
    () =>
      createRoot(root).render(
        <StrictMode>
          <App />
        </StrictMode>,
      ),
    () => showLoadFailed(root),
  );
