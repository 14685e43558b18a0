/** Parts of the document that this gateway does not read. */
export type Json = Record<string, unknown>;

/** An OpenAPI 3.1 document, typed as far as this gateway reads it. */
export interface OpenApiDocument extends Json {
  readonly info: Json & { readonly title: string; readonly version: string; readonly summary: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** By path and by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  /** By event type. */
  readonly webhooks: Readonly<Record<string, { readonly post: Webhook }>>;
  readonly components: Json & { readonly schemas: Schemas; readonly headers: Readonly<Record<string, Header>> };
}

/** A request of Signpost to an endpoint of an account. */
export interface Webhook extends Json {
  readonly operationId: string;
  readonly summary: string;
  readonly requestBody: { readonly required: true; readonly content: Content };
}

export interface Header {
  readonly description: string;
  readonly schema: Schema;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly OperationParameter[];
  readonly requestBody?: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, OperationResponse>>;
}

export interface OperationParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: true;
  readonly schema: Schema;
  readonly description?: string;
  readonly example?: unknown;
}

export interface OperationResponse {
  readonly description: string;
  /** The headers of this response, or references to components. */
  readonly headers: Readonly<Record<string, Header | { readonly $ref: string }>>;
  readonly content?: Content;
}

/** By media type. */
export type Content = Readonly<Record<string, MediaType>>;

export interface MediaType {
  readonly schema?: Schema;
  readonly example?: unknown;
  /** Several examples, by name, instead of one. */
  readonly examples?: Readonly<Record<string, Example>>;
}

export interface Example {
  readonly summary?: string;
  readonly description?: string;
  readonly value: unknown;
}

/** By name, under `components`. */
export type Schemas = Readonly<Record<string, Schema>>;

/** JSON Schema 2020-12. */
export interface Schema extends Json {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly examples?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Schemas;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
