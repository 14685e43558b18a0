import { Check, Minus } from 'lucide-react';
import { Section } from '../../components/page.tsx';
import { Table } from '../../components/table.tsx';
import { ROLES, type RoleName } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './team.module.css';

/** The least role for each kind of thing; the core enforces it by method. */
const LEAST = { read: 'viewer', codes: 'editor', settings: 'admin', owner: 'owner' } as const;

/** What each role may do. */
export function Permissions() {
  const {
    team: { may: texts },
    shell,
  } = useMessages();
  const rows = [
    { id: 'read', text: texts.rows.read, least: LEAST.read },
    { id: 'codes', text: texts.rows.codes, least: LEAST.codes },
    { id: 'settings', text: texts.rows.settings, least: LEAST.settings },
    { id: 'owner', text: texts.rows.owner, least: LEAST.owner },
  ];
  const may = (role: RoleName, least: RoleName) => ROLES.indexOf(role) >= ROLES.indexOf(least);
  return (
    <Section title={texts.title}>
      <Table
        caption={texts.title}
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          {
            id: 'what',
            title: texts.what,
            isRowHeader: true,
            cell: ({ text }) => <span className={styles.what}>{text}</span>,
          },
          ...ROLES.map((role) => ({
            id: role,
            title: shell.roles[role],
            cell: ({ least }: { least: RoleName }) => (
              <span className={may(role, least) ? styles.yes : styles.no}>
                {may(role, least) ? <Check aria-hidden size={16} /> : <Minus aria-hidden size={16} />}
                <span className="visually-hidden">{may(role, least) ? texts.yes : texts.no}</span>
              </span>
            ),
          })),
        ]}
      />
    </Section>
  );
}
