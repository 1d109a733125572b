/**
 * Replaces every TypeScript file below the folder given as argument by plain JavaScript under the same name, each
 * line and column in its place. A file with a syntax error stays as it is, for Node.js to complain about.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

const [folder = '.'] = process.argv.slice(2);
for (const path of globSync('**/*.ts', { cwd: folder, exclude: ['node_modules'] })) {
  const file = join(folder, path);
  try {
    writeFileSync(file, stripTypeScriptTypes(readFileSync(file, 'utf8')));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
}
