/** Finds or fetches Prometheus and promtool, to see that metrics are what they take. */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './command.ts';
import { toolDirectory, unpackPackage } from './unpacked-package.ts';

export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/** Paths of both programs; the first call may download Debian's or Ubuntu's package `prometheus`. */
export async function prometheusPrograms(): Promise<PrometheusPrograms> {
  const find = (name: string) => {
    const unpacked = join(toolDirectory, name);
    return findProgram(name) ?? (existsSync(unpacked) ? unpacked : undefined);
  };
  if (find('prometheus') === undefined || find('promtool') === undefined) {
    await unpackPackage('prometheus', (directory) => {
      for (const name of ['prometheus', 'promtool']) {
        renameSync(join(directory, 'usr/bin', name), join(toolDirectory, name));
      }
    });
  }
  return { prometheus: find('prometheus')!, promtool: find('promtool')! };
}
