/**
 * Finds the credentials for an image among those of one origin. Pure. All that match are answered, those
 * with the most particular pattern first; if none does, credentials for Docker Hub serve its images.
 */
import type { RegistryCredential } from './registry-credential.ts';
import { coversImage, type RegistryPattern } from './registry-pattern.ts';

export interface KeyringEntry {
  readonly pattern: RegistryPattern;
  readonly credential: RegistryCredential;
}

/** Docker Hub under the name that `docker login` writes. */
const hubKey = 'index.docker.io';

export class RegistryKeyring {
  readonly #entries: readonly KeyringEntry[];

  constructor(entries: readonly KeyringEntry[]) {
    // Descending by name: of two patterns of one host the one with the longer path comes first.
    this.#entries = entries.toSorted((a, b) =>
      a.pattern.key === b.pattern.key ? 0 : a.pattern.key < b.pattern.key ? 1 : -1,
    );
  }

  /** `repository` is the image's full name without tag and digest: `docker.io/library/nginx`. */
  lookup(repository: string): RegistryCredential[] {
    const found = this.#entries.filter(({ pattern }) => coversImage(pattern, repository));
    const matching =
      found.length > 0 || !repository.startsWith('docker.io/')
        ? found
        : this.#entries.filter(({ pattern }) => pattern.key === hubKey);
    return matching.map(({ credential }) => credential);
  }
}
