/**
 * What a query over `codes c` adds to read the labels of its rows: the only way in which another room's SQL touches
 * the tables of this one. Indexes: folders_pkey, code_tags_pkey, tags_pkey.
 */
export const LABEL_COLUMNS = `
  (select f.name from folders f where f.id = c.folder_id) as folder_name,
  array(select t.name from code_tags ct join tags t on t.id = ct.tag_id where ct.code_id = c.id
        order by t.name collate "und-x-icu") as tags`;

/** The same as a condition: codes with any of the tags whose ids are in the parameter. Index: code_tags_by_tag. */
export const hasAnyTag = (parameter: string) =>
  `exists (select from code_tags ct where ct.code_id = c.id and ct.tag_id = any(${parameter}::uuid[]))`;
