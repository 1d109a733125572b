/** Flags as text, for people to look at: what was given, else the default. Passwords are not shown. */
import { FLAG_NAMES, FLAGS, type GivenFlags } from './flags.ts';

const secret = new Set<string>(['storage-driver-password', 'manifest-url-header']);

export function flagTexts(given: GivenFlags): Record<string, string> {
  const texts = FLAG_NAMES.map((name) => {
    const value: unknown = given[name] ?? FLAGS[name].default;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return [name, secret.has(name) && given[name] !== undefined ? '<masked>' : text] as const;
  });
  return Object.fromEntries(texts);
}
