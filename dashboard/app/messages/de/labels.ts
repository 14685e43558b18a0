import type { labels as en } from '../en/labels.ts';

const codes = (count: number, formatted: string) => `${formatted} ${count === 1 ? 'Code' : 'Codes'}`;

export const labels: typeof en = {
  folder: 'Ordner',
  folders: 'Ordner',
  tags: 'Tags',
  intro: 'Ordner und Tags entstehen, sobald ein Code sie zum ersten Mal erhält.',
  noFolder: 'Kein Ordner',
  newFolder: 'Neuer Ordner: Er wird mit dem Code angelegt.',
  tagsHint: 'Mit der Eingabetaste oder einem Komma fügen Sie ein Tag hinzu.',
  chosenTags: 'Gewählte Tags',
  removeTag: (name) => `Tag „${name}“ entfernen`,
  problems: {
    reserved: '„none“ steht für Codes ohne Ordner.',
    tooLong: 'Ein Name hat höchstens 100 Zeichen.',
    tooManyTags: 'Ein Code hat höchstens 20 Tags.',
    missing: 'Bitte geben Sie einen Namen ein.',
    unknown: 'Bitte wählen Sie einen vorhandenen Namen.',
  },
  search: 'Ordner und Tags durchsuchen',
  actionsOf: (name) => `Aktionen für „${name}“`,
  rename: 'Umbenennen',
  merge: 'Mit anderem zusammenführen',
  showAll: (formatted) => `Alle ${formatted} zeigen`,
  noFolders: 'Noch keine Ordner.',
  noTags: 'Noch keine Tags.',
  noMatch: 'Keine Treffer.',
  emptyTitle: 'Noch keine Ordner und Tags',
  emptyText: 'Ordner und Tags halten viele Codes in Ordnung. Vergeben Sie sie, wenn Sie einen Code anlegen.',
  renameTitle: (name) => `„${name}“ umbenennen`,
  taken: (name) => `„${name}“ gibt es schon. Sie können die beiden stattdessen zusammenführen.`,
  mergeWith: (name) => `Mit „${name}“ zusammenführen`,
  renamed: (name) => `In „${name}“ umbenannt.`,
  notUndone: (name) => `Jemand anderes hat „${name}“ inzwischen umbenannt oder gelöscht. Nichts wurde geändert.`,
  mergeTitle: (name) => `„${name}“ mit anderem zusammenführen`,
  mergeInto: 'Behalten',
  mergeFolderEffect: (count, formatted, from, into) =>
    `${codes(count, formatted)} ${count === 1 ? 'wechselt' : 'wechseln'} von „${from}“ nach „${into}“; „${from}“ wird gelöscht.`,
  mergeTagEffect: (count, formatted, from, into) =>
    `${codes(count, formatted)} mit „${from}“ ${count === 1 ? 'erhält' : 'erhalten'} stattdessen „${into}“; „${from}“ wird gelöscht.`,
  cannotUndo: 'Das lässt sich nicht rückgängig machen.',
  canUndo: 'Sie können das einige Sekunden lang rückgängig machen.',
  mergeAction: 'Zusammenführen',
  merged: (from, into) => `„${from}“ wurde mit „${into}“ zusammengeführt.`,
  deleteTitle: (name) => `„${name}“ löschen`,
  deleteFolderEffect: (count, formatted) =>
    count === 0
      ? 'In diesem Ordner liegt kein Code.'
      : `${codes(count, formatted)} ${count === 1 ? 'liegt' : 'liegen'} dann in keinem Ordner. Kein Code wird gelöscht.`,
  deleteTagEffect: (count, formatted) =>
    count === 0
      ? 'Kein Code hat dieses Tag.'
      : `${codes(count, formatted)} ${count === 1 ? 'verliert' : 'verlieren'} dieses Tag. Kein Code wird gelöscht.`,
  deleted: (name) => `„${name}“ wurde gelöscht.`,
  restored: (name) => `„${name}“ ist wieder an seinen Codes.`,
  notRestored: (count, formatted, name) =>
    `${codes(count, formatted)} ${count === 1 ? 'konnte' : 'konnten'} „${name}“ nicht zurückerhalten.`,
};
