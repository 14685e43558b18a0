import { Page } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

export function Team() {
  const { shell } = useMessages();
  return <Page title={shell.nav.team}>{null}</Page>;
}
