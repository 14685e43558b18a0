/**
 * Columns that a query over `codes c` selects to read the labels of its rows; the names of the tags are in no order.
 * Indexes: folders_pkey, code_tags_pkey, tags_pkey.
 */
export const LABEL_COLUMNS = `
  (select f.name from folders f where f.id = c.folder_id) as folder_name,
  array(select t.name from code_tags ct join tags t on t.id = ct.tag_id where ct.code_id = c.id) as tags`;

/**
 * A query for the ids, as `code_id` and sorted, of the codes that have at least one of the tags whose UUIDs are in the
 * parameter, such as `$3`. Index: code_tags_by_tag.
 */
export const codesWithAnyTag = (parameter: string, direction: 'asc' | 'desc') =>
  `select code_id from code_tags where tag_id = any(${parameter}::uuid[]) group by code_id order by code_id ${direction}`;

/**
 * A query with a row for each of these tags of each code, to count up to a limit. Sorted as in code_tags_by_tag, so
 * that Postgres reads that index even if it expects so many that it would find the first ones anywhere in the table.
 */
export const codesOfTags = (parameter: string) =>
  `select from code_tags where tag_id = any(${parameter}::uuid[]) order by tag_id, code_id`;

/** One row if a code has at least one of these tags, as a lateral item of a `from` clause. Index: code_tags_pkey. */
export const withAnyTag = (codeId: string, parameter: string) =>
  `lateral (select from code_tags where code_id = ${codeId} and tag_id = any(${parameter}::uuid[]) limit 1)`;
