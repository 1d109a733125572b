/** Writes docs/reference/ from the tables in src/config. A unit test tells when it has to run again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { configurationPage, flagsPage } from '../src/config/reference-pages.ts';

const folder = path.join(path.dirname(process.argv[1]!), '../docs/reference');
mkdirSync(folder, { recursive: true });
writeFileSync(path.join(folder, 'flags.md'), flagsPage());
writeFileSync(path.join(folder, 'configuration.md'), configurationPage());
