declare module 'virtual:world-map' {
  /** The world as paths of SVG in a box of this size; `code`: ISO 3166 alpha-2, empty for disputed areas. */
  export const worldMap: {
    readonly width: number;
    readonly height: number;
    readonly countries: readonly { readonly code: string; readonly path: string }[];
  };
}
