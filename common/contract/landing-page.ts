import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { type LandingPage, LandingPageSchema } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';

/**
 * Reads a landing page as Postgres stores it, in protobuf's JSON form. Fields that a later release has added are
 * ignored.
 */
export function storedLandingPage(json: unknown): LandingPage {
  return fromJson(LandingPageSchema, json as JsonValue, { ignoreUnknownFields: true });
}
