import { readdir, readFile } from 'node:fs/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { metrics } from '@opentelemetry/api';
import { measureEventLoop } from '../runtime/event-loop.ts';

/** Measures memory, CPU, files and the event loop of this process, named as in OpenTelemetry's conventions. */
export function measureProcess(): void {
  measureEventLoop();
  const meter = metrics.getMeter('signpost.process');
  meter
    .createObservableUpDownCounter('process.memory.usage', { unit: 'By', description: 'Physical memory in use' })
    .addCallback((result) => result.observe(process.memoryUsage.rss()));
  meter
    .createObservableUpDownCounter('signpost.process.memory.files', {
      unit: 'By',
      description: 'Pages of files in this memory, such as the route table’s, which can be taken back; 0 without /proc',
    })
    .addCallback(async (result) => result.observe(await residentFilesBytes()));
  meter
    .createObservableUpDownCounter('v8js.memory.heap.used', { unit: 'By', description: 'Heap memory in use' })
    .addCallback((result) => {
      for (const space of getHeapSpaceStatistics()) {
        result.observe(space.space_used_size, { 'v8js.heap.space.name': space.space_name });
      }
    });
  meter
    .createObservableCounter('process.cpu.time', { unit: 's', description: 'CPU time, by mode' })
    .addCallback((result) => {
      const { user, system } = process.cpuUsage();
      result.observe(user / 1e6, { 'cpu.mode': 'user' });
      result.observe(system / 1e6, { 'cpu.mode': 'system' });
    });
  meter
    .createObservableGauge('process.uptime', { unit: 's', description: 'Time since the process started' })
    .addCallback((result) => result.observe(process.uptime()));
  meter
    .createObservableUpDownCounter('process.unix.file_descriptor.count', {
      unit: '{file_descriptor}',
      description: 'Open files and sockets; not reported on systems without /proc',
    })
    .addCallback(async (result) => {
      const open = await readdir('/proc/self/fd').catch(() => undefined);
      if (open) result.observe(open.length);
    });
}

/** How much of this process's memory are pages of mapped files, in bytes; 0 on systems without /proc. */
export async function residentFilesBytes(): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  return Number(/^RssFile:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1_024;
}
