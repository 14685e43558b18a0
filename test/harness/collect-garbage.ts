/**
 * Loaded by `node --import`: SIGUSR2 triggers garbage collection, so that the memory measured afterwards is in use. In
 * an idle process V8 collects late by itself.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
process.on('SIGUSR2', collect);
