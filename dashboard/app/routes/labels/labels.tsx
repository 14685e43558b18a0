import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Labels() {
  const { shell } = useMessages();
  return <Page title={shell.nav.labels}>{null}</Page>;
}
