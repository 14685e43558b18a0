import { useQuery } from '@connectrpc/connect-query';
import { TaxonomyService } from '../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';

/** The most characters of a folder's or tag's name. Source: docs/contract.md, "The QR code resource". */
export const MAX_LABEL_CHARACTERS = 100;

/** The most tags of a code. */
export const MAX_TAGS = 20;

/** All folders by name, at most 10,000, with their numbers of codes. */
export function useFolders() {
  return useQuery(TaxonomyService.method.listFolders, {});
}

/** All tags by name, at most 10,000, with their numbers of codes. */
export function useTags() {
  return useQuery(TaxonomyService.method.listTags, {});
}
