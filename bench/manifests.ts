/** The pods of the bench as manifests, which appear and disappear as a tool that cares would do it. */
import { mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { now } from './measure.ts';

const namespace = 'bench';

export class Manifests {
  /** For `--pod-manifest-path`. */
  readonly directory: string;
  readonly #drafts: string;
  readonly #image: string;
  #made = 0;
  #present: string[] = [];

  constructor(base: string, image: string) {
    this.directory = join(base, 'manifests');
    this.#drafts = join(base, 'drafts');
    this.#image = image;
    for (const path of [this.directory, this.#drafts]) mkdirSync(path, { recursive: true });
  }

  get count(): number {
    return this.#present.length;
  }

  /** Makes `count` more appear, each whole; epoch milliseconds of just before the first. */
  add(count: number): number {
    const files = Array.from({ length: count }, () => this.#draft());
    const before = now();
    for (const file of files) renameSync(join(this.#drafts, file), join(this.directory, file));
    this.#present.push(...files);
    return before;
  }

  /** Removes all; epoch milliseconds of just before the first. */
  removeAll(): number {
    const before = now();
    for (const file of this.#present) unlinkSync(join(this.directory, file));
    this.#present = [];
    return before;
  }

  /** Removes the drafts as well. */
  dispose(): void {
    for (const path of [this.directory, this.#drafts]) rmSync(path, { recursive: true, force: true });
  }

  #draft(): string {
    const name = `pod-${++this.#made}`;
    const file = `${name}.yaml`;
    const lines = [
      'apiVersion: v1',
      'kind: Pod',
      `metadata: { name: ${name}, namespace: ${namespace} }`,
      'spec:',
      '  containers:',
      `    - { name: main, image: "${this.#image}", imagePullPolicy: IfNotPresent }`,
    ];
    writeFileSync(join(this.#drafts, file), `${lines.join('\n')}\n`);
    return file;
  }
}
