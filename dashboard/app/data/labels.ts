import { useQuery } from '@connectrpc/connect-query';
import { TaxonomyService } from '../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';

/** All folders by name, at most 10,000, with their numbers of codes. */
export function useFolders() {
  return useQuery(TaxonomyService.method.listFolders, {});
}

/** All tags by name, at most 10,000, with their numbers of codes. */
export function useTags() {
  return useQuery(TaxonomyService.method.listTags, {});
}
