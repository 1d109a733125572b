/**
 * Loads koffi, the library that calls C functions, on first use only (it costs memory nobody needs before).
 *
 * Two homes: the shipped bundle has `koffi.node` lying beside it, everything else finds the npm package.
 * All knowledge of that difference is here.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** A C function: called directly it blocks; `async` runs it on a worker thread. */
export interface NativeFunction {
  (...values: unknown[]): number;
  async(...valuesAndCallback: unknown[]): void;
}

/** The part of koffi this program uses. */
export interface Koffi {
  load(library: string | null): { func(prototype: string): NativeFunction };
  /** The errno of the last call; inside an `async` callback that of the call it answers. */
  errno(): number;
}

let loading: Promise<Koffi> | undefined;

/** Koffi, loaded once. Rejects when neither `koffi.node` nor the package can be loaded on this machine. */
export function loadKoffi(): Promise<Koffi> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Koffi> {
  // CommonJS knows its directory; ES modules (development, tests) have no such variable.
  const beside = typeof __dirname === 'string' ? join(__dirname, 'koffi.node') : undefined;
  try {
    if (beside !== undefined && existsSync(beside)) {
      const native: { exports: unknown } = { exports: {} };
      process.dlopen(native, beside);
      return native.exports as Koffi;
    }
    return await import('koffi');
  } catch (cause) {
    throw new Error(
      `System calls are not available: ${beside ?? 'the package koffi'} cannot be loaded on ${process.platform}-${process.arch}; reinstall the program for this machine`,
      { cause },
    );
  }
}
