/**
 * What is known of one manifest file, and how a reading of it changes that. No I/O, no clock.
 *
 * Guarantees: a text that cannot be used never takes away the pod of an earlier, good text. A bad text
 * that is younger than a second is taken for half-written: it is looked at again before it is reported.
 */
import { createHash } from 'node:crypto';
import type { Pod } from '../kubernetes/types.ts';
import type { ManifestError } from './manifest-error.ts';
import type { FileRead, FileRefused } from './manifest-file.ts';
import type { DecodeManifest } from './pod-source.ts';

/** How long a bad text may be a half-written one, and a vanished file one that is being replaced, ms. */
const settleTime = 1000;

/** Time stamps may be this coarse: a file read so soon after its change may change again unseen, ms. */
const stampGrain = 50;

export type UnkeptError = Omit<ManifestError, 'keepsLastGood'>;

/** A pod with the text it was read from. */
export interface PodVersion {
  readonly pod: Pod;
  readonly text: Uint8Array;
  readonly digest: string;
}

export interface ReadContext {
  /** Epoch ms. */
  readonly now: number;
  readonly decode: DecodeManifest;
  /** The last good text an earlier run of the agent has seen of this file. */
  readonly lastGood: () => string | undefined;
}

export class ManifestRecord {
  readonly path: string;
  /** Of the last reading; empty when the next look must read again. */
  fingerprint = '';
  inode = '';
  /** The pod the file asks for, while the file is good. */
  wanted: PodVersion | undefined;
  /** The pod it has been given: from its present content or an earlier one. */
  accepted: PodVersion | undefined;
  error: UnkeptError | undefined;
  /** Set while another file has the name or uid of the wanted pod. */
  duplicate: UnkeptError | undefined;
  /** Until then (epoch ms) a bad text is not reported, and a vanished file not taken as removed. */
  settleUntil: number | undefined;
  #digest = '';

  constructor(path: string) {
    this.path = path;
  }

  /** The file has been read. */
  read(read: Extract<FileRead, { kind: 'read' }>, context: ReadContext): void {
    const { now } = context;
    const age = Math.abs(now - read.changedAt);
    this.fingerprint = age < stampGrain || read.moved ? '' : read.fingerprint;
    this.inode = read.inode;
    const digest = digestOf(read.content);
    if (digest === this.#digest && this.settleUntil === undefined) return;
    this.#digest = digest;
    const { pods, errors } = context.decode(read.content, this.path);
    const [pod] = pods;
    if (pod !== undefined && errors.length === 0 && !read.moved) {
      this.settleUntil = undefined;
      this.error = undefined;
      this.wanted = digest === this.accepted?.digest ? this.accepted : { pod, text: read.content, digest };
      return;
    }
    const young = read.moved || age < settleTime;
    if (this.settleUntil === undefined && this.error === undefined && young) {
      this.settleUntil = now + settleTime;
    }
    if (this.settleUntil !== undefined && now < this.settleUntil) return this.#fallBack(context);
    this.settleUntil = undefined;
    this.#fail(errors[0] ?? this.#problem('it changes while it is read', 'Stop writing to it'), context);
    if (read.moved) this.#digest = '';
  }

  /** The file is there, but nothing that can be read. */
  refused({ reason, remedy }: FileRefused, context: ReadContext): void {
    this.fingerprint = '';
    this.#digest = '';
    this.settleUntil = undefined;
    this.#fail(this.#problem(reason, remedy), context);
  }

  /**
   * The file is not there. True when it is to be taken as removed; false while it may be coming back, as
   * when an editor has moved it aside (`movedAside`) to write the new version.
   */
  gone(now: number, movedAside: boolean): boolean {
    this.fingerprint = '';
    this.#digest = '';
    if (movedAside && this.settleUntil === undefined) this.settleUntil = now + settleTime;
    return this.settleUntil === undefined || now >= this.settleUntil || !movedAside;
  }

  #fail(error: UnkeptError, context: ReadContext): void {
    this.error = error;
    this.wanted = undefined;
    this.#fallBack(context);
  }

  /** A bad file whose good version only an earlier run of the agent has seen. */
  #fallBack({ lastGood, decode }: ReadContext): void {
    if (this.accepted !== undefined || this.wanted !== undefined) return;
    const text = lastGood();
    if (text === undefined) return;
    const bytes = Buffer.from(text);
    const [pod] = decode(bytes, this.path).pods;
    if (pod !== undefined) this.wanted = { pod, text: bytes, digest: digestOf(bytes) };
  }

  #problem(reason: string, remedy: string): UnkeptError {
    return { source: 'file', origin: this.path, problems: [{ reason }], remedy };
  }
}

function digestOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('base64');
}
