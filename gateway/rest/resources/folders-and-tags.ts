import { z } from 'zod';
import { failure } from '../../../common/contract/errors.ts';
import { LIMITS, type Limited, limitClause } from '../../../common/contract/limits.ts';
import { type Folder, type Tag, TaxonomyService } from '../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { count } from './page.ts';

function listOf(id: 'Folder' | 'Tag', description: string) {
  const label = z
    .object({
      id: z.string(),
      name: z.string(),
      code_count: count('Codes that are not deleted.'),
    })
    .meta({ id, description });
  return z.object({ success: z.literal(true), data: z.array(label) });
}

const folderList = listOf('Folder', 'A folder; a code is in at most one.');
const tagList = listOf('Tag', 'A tag; a code may have several.');

/** Lists of folders and tags, which are created by naming them on a code. Source: GET /api/v1/folders, /api/v1/tags. */
export function foldersAndTags(core: CoreClients): Endpoint[] {
  return [
    endpoint({
      id: 'listFolders',
      method: 'GET',
      path: '/api/v1/folders',
      rpc: TaxonomyService.method.listFolders,
      tag: 'Folders and tags',
      summary: 'List folders',
      description: 'All folders of the account by name, at most 10,000. A folder is created by naming it on a code.',
      success: { 200: 'The folders.' },
      response: {
        schema: folderList,
        example: {
          success: true,
          data: [{ id: 'folder_01kagcpn8me3vs6t7k5sfm2s9p', name: 'Berlin', code_count: 12 }],
        },
      },
      errors: {},
      errorDescriptions: { 503: 'The folders could not be read; retry. Never an empty list instead.' },
      async handle({ options }) {
        const { folders, nextCursor } = await core.taxonomy.listFolders({ limit: LIMITS.folders }, options);
        expectAll('folders', nextCursor);
        return { status: 200, body: { success: true, data: folders.map(labelJson) } };
      },
    }),
    endpoint({
      id: 'listTags',
      method: 'GET',
      path: '/api/v1/tags',
      rpc: TaxonomyService.method.listTags,
      tag: 'Folders and tags',
      summary: 'List tags',
      description: 'All tags of the account by name, at most 10,000. A tag is created by naming it on a code.',
      success: { 200: 'The tags.' },
      response: {
        schema: tagList,
        example: { success: true, data: [{ id: 'tag_01kagcpn9jfbxsg8m2yq3v7d0c', name: 'summer', code_count: 40 }] },
      },
      errors: {},
      errorDescriptions: { 503: 'The tags could not be read; retry. Never an empty list instead.' },
      async handle({ options }) {
        const { tags, nextCursor } = await core.taxonomy.listTags({ limit: LIMITS.tags }, options);
        expectAll('tags', nextCursor);
        return { status: 200, body: { success: true, data: tags.map(labelJson) } };
      },
    }),
  ];
}

/**
 * One page holds as many as an account may have, so that the list is a consistent snapshot and costs one request. An
 * account that exceeded the limit before it existed gets an error instead of a partial list, which a sync would
 * interpret as deletions.
 */
function expectAll(what: Limited, nextCursor: string | undefined): void {
  if (nextCursor === undefined) return;
  throw failure('UNAVAILABLE', `The ${what} cannot be listed, because there are too many: ${limitClause(what)}.`);
}

function labelJson({ id, name, codeCount }: Folder | Tag) {
  return { id, name, code_count: Number(codeCount) };
}
