import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Compiling the modules anew takes twice as long as a short command. `npm start` uses the same folder. Where it cannot
// be written, nothing is cached.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'));
// A reader that closes the pipe of standard error must not change the exit code.
process.stderr.on('error', () => undefined);
const { runProgram } = await import('./program.ts');
await runProgram(process.argv);
