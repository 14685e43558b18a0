const codes = (count: number, formatted: string) => `${formatted} ${count === 1 ? 'code' : 'codes'}`;
const become = (count: number) => (count === 1 ? 'becomes' : 'become');

/** Texts about folders and tags. */
export const labels = {
  folder: 'Folder',
  folders: 'Folders',
  tags: 'Tags',
  intro: 'Folders and tags are created when a code first gets them.',
  noFolder: 'No folder',
  newFolder: 'New folder: it is created with the code.',
  tagsHint: 'Enter or a comma adds a tag.',
  chosenTags: 'Chosen tags',
  removeTag: (name: string) => `Remove the tag “${name}”`,
  problems: {
    reserved: '“none” stands for codes without a folder.',
    tooLong: 'A name has at most 100 characters.',
    tooManyTags: 'A code has at most 20 tags.',
    missing: 'Enter a name.',
    unknown: 'Choose one that exists.',
  },
  search: 'Search folders and tags',
  actionsOf: (name: string) => `Actions for “${name}”`,
  rename: 'Rename',
  merge: 'Merge into another',
  showAll: (formatted: string) => `Show all ${formatted}`,
  noFolders: 'No folders yet.',
  noTags: 'No tags yet.',
  noMatch: 'Nothing matches.',
  emptyTitle: 'No folders and tags yet',
  emptyText: 'Folders and tags keep many codes in order. Name one when you create a code.',
  renameTitle: (name: string) => `Rename “${name}”`,
  taken: (name: string) => `“${name}” exists already. The two can be merged instead.`,
  mergeWith: (name: string) => `Merge into “${name}”`,
  renamed: (name: string) => `Renamed to “${name}”.`,
  notUndone: (name: string) => `Someone else has renamed or deleted “${name}” since. Nothing was changed.`,
  mergeTitle: (name: string) => `Merge “${name}” into another`,
  mergeInto: 'Keep',
  mergeFolderEffect: (count: number, formatted: string, from: string, into: string) =>
    `${codes(count, formatted)} ${count === 1 ? 'moves' : 'move'} from “${from}” to “${into}”, and “${from}” is deleted.`,
  mergeTagEffect: (count: number, formatted: string, from: string, into: string) =>
    `${codes(count, formatted)} with “${from}” ${count === 1 ? 'gets' : 'get'} “${into}” instead, and “${from}” is deleted.`,
  cannotUndo: 'This cannot be undone.',
  canUndo: 'You can undo this for some seconds.',
  mergeAction: 'Merge',
  merged: (from: string, into: string) => `“${from}” was merged into “${into}”.`,
  deleteTitle: (name: string) => `Delete “${name}”`,
  deleteFolderEffect: (count: number, formatted: string) =>
    count === 0
      ? 'No code is in this folder.'
      : `${codes(count, formatted)} ${become(count)} unfiled. No code is deleted.`,
  deleteTagEffect: (count: number, formatted: string) =>
    count === 0
      ? 'No code has this tag.'
      : `${codes(count, formatted)} ${count === 1 ? 'loses' : 'lose'} this tag. No code is deleted.`,
  deleted: (name: string) => `“${name}” was deleted.`,
  restored: (name: string) => `“${name}” is back on its codes.`,
  notRestored: (count: number, formatted: string, name: string) =>
    `${codes(count, formatted)} could not get “${name}” back.`,
};
