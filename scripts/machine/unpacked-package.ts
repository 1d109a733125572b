/**
 * Packages of the distribution that are unpacked beside the checkout instead of installed: nothing of the
 * machine changes, and no service comes along.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { updatePackageLists } from './install-packages.ts';

/** Where tools that were unpacked are kept between runs. */
export const toolDirectory = join(import.meta.dirname, '../../.cache/tools');

/** Fetches a package and unpacks it into a directory that lives until `take` has what it wants of it. */
export async function unpackPackage(
  name: string,
  take: (directory: string) => void | Promise<void>,
): Promise<void> {
  const work = join(toolDirectory, `download-${process.pid}`);
  mkdirSync(work, { recursive: true });
  removeAbandoned();
  try {
    // Without this the archive is fetched as the user _apt, who may not be allowed to write here.
    const download = ['-q', '-o', 'APT::Sandbox::User=root', 'download', name];
    await runCommand('apt-get', download, { cwd: work, timeout: 300_000 }).catch(async () => {
      await updatePackageLists();
      await runCommand('apt-get', download, { cwd: work, timeout: 300_000 });
    });
    const archive = readdirSync(work).find((file) => file.endsWith('.deb'));
    if (archive === undefined) throw new Error(`${name}: apt-get download left no archive in ${work}`);
    await runCommand('dpkg-deb', ['--extract', join(work, archive), work]);
    await take(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Removes what downloads that were killed have left. */
function removeAbandoned(): void {
  for (const name of readdirSync(toolDirectory)) {
    const pid = /^download-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(toolDirectory, name), { recursive: true, force: true });
    }
  }
}
