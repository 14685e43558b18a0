import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { worldMap } from './world-map-plugin.ts';

const DIST = join(import.meta.dirname, 'dist');

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), worldMap(), compressed()],
  resolve: {
    alias: {
      '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js': join(
        import.meta.dirname,
        'data/validate-descriptor.ts',
      ),
    },
  },
  build: {
    outDir: DIST,
    emptyOutDir: true,
    // Browsers of the last two and a half years, as the design's `light-dark()` needs.
    target: 'baseline-widely-available',
    // Images inside of scripts would be larger than the files.
    assetsInlineLimit: 0,
    // The polyfill is a script for browsers that don't have `modulepreload`: none of the target's.
    modulePreload: { polyfill: false },
  },
});

/** Writes compressed copies beside the built files, which the server sends: `.br` and `.gz`. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    closeBundle() {
      for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(html|js|css|svg|json)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const content = readFileSync(path);
        writeFileSync(`${path}.br`, brotliCompressSync(content));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}
