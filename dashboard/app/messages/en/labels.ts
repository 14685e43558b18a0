/** Texts about folders and tags. */
export const labels = {
  folder: 'Folder',
  tags: 'Tags',
  newFolder: 'New folder: it is created with the code.',
  tagsHint: 'Enter or a comma adds a tag.',
  chosenTags: 'Chosen tags',
  removeTag: (name: string) => `Remove the tag “${name}”`,
  problems: {
    reserved: '“none” stands for codes without a folder.',
    tooLong: 'A name has at most 100 characters.',
    tooManyTags: 'A code has at most 20 tags.',
  },
};
