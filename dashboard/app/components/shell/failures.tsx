import { Link, useRouter } from '@tanstack/react-router';
import { useRef } from 'react';
import { isFileMissing } from '../../data/missing-files.ts';
import { queryClient } from '../../data/queries.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { buttonLink } from '../button.tsx';
import { LoadFailed } from '../loaded.tsx';
import { Page } from '../page.tsx';

export function NotFound() {
  const { shell } = useFirstMessages();
  return (
    <Page title={shell.notFound.title}>
      <p>{shell.notFound.text}</p>
      <p>
        <Link to="/" className={buttonLink.plain}>
          {shell.notFound.home}
        </Link>
      </p>
    </Page>
  );
}

/** In place of a page that could not be loaded, with a way to try again. */
export function PageFailed({ error, reset }: { readonly error: unknown; readonly reset: () => void }) {
  const { shell } = useFirstMessages();
  const router = useRouter();
  const isRetrying = useRef(false);
  const retry = async () => {
    // The files of the previous version, which the browser knows, no longer exist.
    if (isFileMissing(error)) return location.reload();
    // A second attempt meanwhile would make the router start all over.
    if (isRetrying.current) return;
    isRetrying.current = true;
    await queryClient.resetQueries({ predicate: ({ state }) => state.status === 'error' });
    await router.invalidate();
    isRetrying.current = false;
    reset();
  };
  return (
    <Page title={shell.failed.title}>
      <LoadFailed error={error} retry={() => void retry()} />
    </Page>
  );
}
