import { Link } from '@tanstack/react-router';
import { useErrorText } from '../../data/error-text.ts';
import { queryClient } from '../../data/queries.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { Button, buttonLink } from '../button.tsx';
import { Notice, Page } from '../page.tsx';

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
  const errorText = useErrorText();
  const retry = () => {
    void queryClient.resetQueries({ predicate: ({ state }) => state.status === 'error' }).then(reset);
  };
  return (
    <Page title={shell.failed.title}>
      <Notice look="danger" action={<Button onPress={retry}>{shell.failed.retry}</Button>}>
        {errorText(error)}
      </Notice>
    </Page>
  );
}
