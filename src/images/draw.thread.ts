import { parentPort } from 'node:worker_threads';
import type { Drawn } from './draw.ts';
import { type Drawing, drawn } from './drawing.ts';

parentPort?.on('message', (drawing: Drawing) => {
  let answer: Drawn;
  try {
    answer = { image: drawn(drawing) };
  } catch (error) {
    answer = { error };
  }
  parentPort?.postMessage(answer);
});
