import type { Outcome } from '../remember.ts';

/** An outcome for something that went wrong outside the agent's power. */
export function failed(reason: string, error: unknown): Outcome {
  return { ok: false, reason, message: error instanceof Error ? error.message : String(error) };
}
