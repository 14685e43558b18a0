import type { labels as en } from '../en/labels.ts';

export const labels: typeof en = {
  folder: 'Ordner',
  tags: 'Tags',
  newFolder: 'Neuer Ordner: Er wird mit dem Code angelegt.',
  tagsHint: 'Mit der Eingabetaste oder einem Komma fügen Sie ein Tag hinzu.',
  chosenTags: 'Gewählte Tags',
  removeTag: (name) => `Tag „${name}“ entfernen`,
  problems: {
    reserved: '„none“ steht für Codes ohne Ordner.',
    tooLong: 'Ein Name hat höchstens 100 Zeichen.',
    tooManyTags: 'Ein Code hat höchstens 20 Tags.',
  },
};
