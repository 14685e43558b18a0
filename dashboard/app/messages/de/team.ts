import type { team as en } from '../en/team.ts';

export const team: typeof en = {
  account: 'Konto',
  accountName: 'Name des Kontos',
  rename: 'Umbenennen',
  renamed: 'Das Konto wurde umbenannt',
  members: 'Mitglieder',
  add: 'Mitglied hinzufügen',
  email: 'E-Mail-Adresse',
  emailNote: 'Mit dieser Adresse meldet sich die Person an.',
  role: 'Rolle',
  roleOf: (email) => `Rolle von ${email}`,
  added: 'Hinzugefügt',
  you: 'Sie',
  addedToast: (email) => `${email} wurde hinzugefügt`,
  changed: (email, role) => `${email} hat jetzt die Rolle: ${role}`,
  notUndone: (email) =>
    `Jemand anderes hat inzwischen die Rolle von ${email} geändert oder das Mitglied entfernt. Nichts wurde geändert.`,
  ownerTitle: (email) => `${email} zum Inhaber machen?`,
  ownerText: 'Inhaber dürfen alles: auch Sie entfernen, den API-Schlüssel ersetzen und das Konto schließen.',
  ownerAction: 'Zum Inhaber machen',
  ownRoleTitle: (role) => `Die eigene Rolle in „${role}“ ändern?`,
  ownRole:
    'Sie können das nicht selbst rückgängig machen, sondern nur jemand anders mit der Rolle „Verwalten“ oder „Inhaber“.',
  ownRoleOfOwner: 'Sie können das nicht selbst rückgängig machen, sondern nur jemand anders mit der Rolle „Inhaber“.',
  ownRoleAction: 'Meine Rolle ändern',
  remove: 'Entfernen',
  removeOf: (email) => `Entfernen: ${email}`,
  removeTitle: (email) => `${email} entfernen?`,
  removeText:
    'Die Person verliert sofort den Zugang zu diesem Konto, auch in offenen Fenstern. Was sie getan hat, bleibt bestehen, auch im Protokoll.',
  removed: (email) => `${email} wurde entfernt`,
  leave: 'Konto verlassen',
  leaveTitle: (account) => `${account} verlassen?`,
  leaveText:
    'Sie verlieren sofort den Zugang. Damit Sie zurückkehren können, muss ein anderes Mitglied Sie wieder hinzufügen.',
  leaveAsk:
    'Um das Konto zu verlassen, bitten Sie jemanden mit der Rolle „Verwalten“ oder „Inhaber“, Sie zu entfernen.',
  lastOwner:
    'Nur Sie sind Inhaber. Um zu gehen oder eine andere Rolle zu übernehmen, machen Sie zuerst jemand anderen zum Inhaber.',
  close: {
    title: 'Konto schließen',
    text: 'Alle Codes verlieren für immer ihre Funktion, auch gedruckte; der API-Schlüssel wird ungültig, und die Domains können von anderen verwendet werden. Das lässt sich nicht rückgängig machen.',
    action: 'Konto schließen',
    ask: (account) => `${account} für immer schließen?`,
    deleteData: 'Auch alle Daten des Kontos löschen, einschließlich der Scans',
  },
  signIn: {
    title: 'So melden sich Mitglieder an',
    provider:
      'Mit der Anmeldung Ihrer Organisation, falls sie eingerichtet ist: über die E-Mail-Adresse oben, die dort bestätigt sein muss.',
    link: 'Mit einem Link für eine einzige Anmeldung innerhalb von 15 Minuten. Ihn erzeugt, wer Signpost betreibt; Signpost verschickt selbst keine E-Mails:',
  },
  may: {
    title: 'Was die Rollen dürfen',
    what: 'Was',
    yes: 'ja',
    no: 'nein',
    rows: {
      read: 'Codes, Scans, Webhooks, Mitglieder und das Protokoll ansehen',
      codes: 'Codes, Ziele, Stapel, Ordner und Tags anlegen und ändern',
      settings: 'Domains, Webhooks, Mitglieder und den Namen des Kontos ändern',
      owner: 'Den API-Schlüssel ersetzen, Inhaber ändern, das Konto schließen',
    },
  },
};
