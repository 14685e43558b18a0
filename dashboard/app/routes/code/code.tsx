import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function CodePage() {
  const { shell } = useMessages();
  return <Page title={shell.nav.codes}>{null}</Page>;
}
