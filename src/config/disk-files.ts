/** Configuration files on the real disk. A pipe, a device or a huge file is refused instead of read. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { ConfigurationFiles } from './config-file.ts';

const LARGEST_FILE = 4 * 1024 * 1024;

/** Configuration files of this machine: regular, not larger than any configuration, valid UTF-8. */
export const diskFiles: ConfigurationFiles = {
  readFile(path) {
    const status = statSync(path);
    if (!status.isFile()) throw new Error('is not a regular file');
    if (status.size > LARGEST_FILE) throw new Error(`is larger than ${LARGEST_FILE} bytes`);
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    } catch (error) {
      if (error instanceof TypeError) throw new Error('is not UTF-8 text', { cause: error });
      throw error;
    }
  },
  readDirectory(path) {
    return readdirSync(path, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      isDirectory: entry.isDirectory(),
    }));
  },
};
