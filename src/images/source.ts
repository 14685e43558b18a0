/** A code as its image needs it. */
export interface ImageSource {
  readonly shortCode: string;
  readonly name: string | null;
  readonly content: ImageContent;
  /** `#rgb` or `#rrggbb`. */
  readonly foreground: string;
  /** `#rgb` or `#rrggbb`. */
  readonly background: string;
}

/** What the image encodes, or why it can't be drawn. */
export type ImageContent =
  | { readonly kind: 'scan_url'; readonly url: string }
  | { readonly kind: 'payload'; readonly text: string }
  | { readonly kind: 'nothing' }
  /** The custom domain that the code is printed on is failing or gone. */
  | { readonly kind: 'unresolved_domain' };

/** What the images room asks of the room of codes. */
export interface ImageSources {
  /** The account's code by its id `qr_…`; undefined when it has no such code. `accountId`: UUID. */
  imageSource(accountId: string, id: string): Promise<ImageSource | undefined>;
}
