/**
 * Columns that a query over `codes c` selects to read the labels of its rows; the names of the tags are in no order. Only
 * through these fragments does SQL of other modules access the tables of this one. Indexes: folders_pkey, code_tags_pkey,
 * tags_pkey.
 */
export const LABEL_COLUMNS = `
  (select f.name from folders f where f.id = c.folder_id) as folder_name,
  array(select t.name from code_tags ct join tags t on t.id = ct.tag_id where ct.code_id = c.id) as tags`;

/**
 * A condition on `codes c`: the code has at least one of the tags whose UUIDs are in the parameter, such as `$3`.
 * Index: code_tags_by_tag.
 */
export const hasAnyTag = (parameter: string) =>
  `exists (select from code_tags ct where ct.code_id = c.id and ct.tag_id = any(${parameter}::uuid[]))`;
