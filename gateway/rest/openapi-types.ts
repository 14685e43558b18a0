/** Parts of the document that this gateway does not read. */
export type Json = Record<string, unknown>;

/** An OpenAPI 3.1 document, typed as far as this gateway reads it. */
export interface OpenApiDocument extends Json {
  readonly info: Json & { readonly title: string; readonly version: string; readonly description: string };
  /** By path and by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Json & { readonly schemas: Schemas };
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
}

export interface OperationResponse {
  readonly description: string;
  readonly headers: Json;
  readonly content?: Content;
}

/** By media type. */
export type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;

/** By name, under `components`. */
export type Schemas = Readonly<Record<string, Schema>>;

/** JSON Schema 2020-12. */
export interface Schema extends Json {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Schemas;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
