/**
 * One place in a kubeconfig: reads typed fields, and words errors with file, line and field. Empty texts
 * count as missing, as in every kubeconfig that tools write. Values never appear in messages of this class:
 * they may be secrets.
 */
import type { JsonObject, JsonValue, YamlDocument } from '../kubernetes/yaml.ts';

/** The kubeconfig cannot be used; the message names file, line and field. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

export class KubeconfigNode {
  readonly value: JsonValue | undefined;
  readonly #file: string;
  readonly #document: YamlDocument;
  readonly #path: readonly (string | number)[];

  constructor(
    file: string,
    document: YamlDocument,
    path: readonly (string | number)[],
    value: JsonValue | undefined,
  ) {
    this.#file = file;
    this.#document = document;
    this.#path = path;
    this.value = value ?? undefined;
  }

  error(message: string): KubeconfigError {
    const line = this.#document.lineOf(this.#path);
    const field = this.#path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');
    const where = `kubeconfig ${this.#file}${line === undefined ? '' : `, line ${line}`}`;
    return new KubeconfigError(`${where}: ${field.slice(1) || 'the text'} ${message}`);
  }

  /** This node, known to be a mapping. */
  asMapping(): KubeconfigNode {
    this.#mapping();
    return this;
  }

  field(name: string): KubeconfigNode {
    return this.#child(name, this.#mapping(true)?.[name]);
  }

  has(name: string): boolean {
    return this.field(name).value !== undefined;
  }

  keys(): string[] {
    return Object.keys(this.#mapping(true) ?? {});
  }

  items(): KubeconfigNode[] {
    if (this.value === undefined) return [];
    if (!Array.isArray(this.value)) throw this.error('must be a list');
    return this.value.map((item, index) => this.#child(index, item).asMapping());
  }

  text(name: string): string | undefined {
    const node = this.field(name);
    if (node.value === undefined || node.value === '') return undefined;
    if (typeof node.value !== 'string') throw node.error('must be a text');
    return node.value;
  }

  requiredText(name: string): string {
    const text = this.text(name);
    if (text === undefined) throw this.field(name).error('is missing');
    return text;
  }

  texts(name: string): string[] {
    const node = this.field(name);
    if (node.value === undefined) return [];
    if (!Array.isArray(node.value)) throw node.error('must be a list of texts');
    return node.value.map((item, index) => {
      if (typeof item !== 'string') throw node.#child(index, item).error('must be a text');
      return item;
    });
  }

  flag(name: string): boolean {
    const node = this.field(name);
    if (node.value === undefined) return false;
    if (typeof node.value !== 'boolean') throw node.error('must be true or false');
    return node.value;
  }

  #child(part: string | number, value: JsonValue | undefined): KubeconfigNode {
    return new KubeconfigNode(this.#file, this.#document, [...this.#path, part], value);
  }

  #mapping(optional = false): JsonObject | undefined {
    if (this.value === undefined) {
      if (optional) return undefined;
      throw this.error('is missing');
    }
    if (typeof this.value !== 'object' || this.value === null || Array.isArray(this.value))
      throw this.error('must be a mapping');
    return this.value;
  }
}
