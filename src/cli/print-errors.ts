/** How mistakes in flags and files are shown: all of them, one a line, place first. */
import pc from 'picocolors';
import { type ConfigurationError, describeConfigurationError } from '../config/configuration-error.ts';

export function printErrors(errors: readonly ConfigurationError[], color: boolean): string {
  const colors = pc.createColors(color);
  const head = errors.length === 1 ? '1 mistake' : `${errors.length} mistakes`;
  const lines = errors.map(({ message, ...place }) => {
    const where = describeConfigurationError({ ...place, message: '' }).replace(/: $/, '');
    return where === '' ? `  ${message}` : `  ${colors.bold(where)}: ${message}`;
  });
  return `${colors.red(`kubelet: ${head} in flags and configuration`)}\n${lines.join('\n')}\n`;
}
