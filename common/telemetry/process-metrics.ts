import { readdir } from 'node:fs/promises';
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
