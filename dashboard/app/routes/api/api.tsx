import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Api() {
  const { shell } = useMessages();
  return <Page title={shell.nav.api}>{null}</Page>;
}
