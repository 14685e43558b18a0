/**
 * Loaded by `node --import`: SIGUSR2 makes the process collect its garbage, so that the memory that it then has is memory
 * that it holds. By itself V8 does so late in a process that does nothing.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
process.on('SIGUSR2', collect);
