import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Overview() {
  const { shell } = useMessages();
  return <Page title={shell.nav.overview}>{null}</Page>;
}
