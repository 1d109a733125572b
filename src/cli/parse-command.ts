/** Finds out what a command line asks for. Without a command word it asks for the agent itself. */
import type { ConfigurationError } from '../config/configuration-error.ts';
import type { GivenFlags } from '../config/flags/flags.ts';
import { parseArguments } from '../config/flags/parse-arguments.ts';
import { nearestName } from '../kubernetes/nearest-name.ts';

export type Command =
  | { readonly kind: 'help' }
  /** `form` is what `--version` was given: `true` (one line) or `raw` (every part). */
  | { readonly kind: 'print-version'; readonly form: 'true' | 'raw' }
  /** The `version` command: ours, Kubernetes' and Node's. */
  | { readonly kind: 'version' }
  | { readonly kind: 'config-validate'; readonly file: string; readonly given: GivenFlags }
  | {
      readonly kind: 'run';
      readonly given: GivenFlags;
      /** `--version=vX.Y.Z`: report this version instead of our own. */
      readonly reportedVersion?: string;
    }
  | { readonly kind: 'invalid'; readonly errors: readonly ConfigurationError[]; readonly given: GivenFlags };

const COMMANDS = ['config validate', 'version', 'help'];

/** `argv` without the executable. Never throws. */
export function parseCommand(argv: readonly string[]): Command {
  const { given, words, errors } = parseArguments(argv);
  const invalid = (...more: ConfigurationError[]): Command => ({
    kind: 'invalid',
    errors: [...errors, ...more],
    given,
  });

  if (given.help || words[0] === 'help') return { kind: 'help' };
  if (errors.length === 0 && (given.version === 'true' || given.version === 'raw')) {
    return { kind: 'print-version', form: given.version };
  }
  const [first, second, file, ...surplus] = words;
  if (first === undefined) {
    if (errors.length > 0) return invalid();
    const reported = given.version?.startsWith('v') ? given.version : undefined;
    return { kind: 'run', given, ...(reported !== undefined && { reportedVersion: reported }) };
  }
  if (first === 'version' && second === undefined) return errors.length > 0 ? invalid() : { kind: 'version' };
  if (first === 'config' && second === 'validate') {
    if (file === undefined || surplus.length > 0)
      return invalid({ message: 'config validate takes one FILE' });
    if (given.config !== undefined) return invalid({ flag: 'config', message: 'is the FILE itself here' });
    return errors.length > 0 ? invalid() : { kind: 'config-validate', file, given };
  }
  const written = words.slice(0, 2).join(' ');
  const nearest = nearestName(written, COMMANDS) ?? nearestName(first, COMMANDS);
  const hint = first === 'config' ? 'config validate' : nearest;
  return invalid({
    message: `unknown command ${JSON.stringify(written)}${hint ? `; did you mean "${hint}"?` : ''}`,
  });
}
