/**
 * The shell script that runs test files, or a command with its arguments as they are, whatever they contain.
 */
export function commandScript(command: readonly string[]): string {
  const tests = command.every((argument) => argument.endsWith('.test.ts'));
  // A process for each file costs seconds under emulation, and a single file needs no isolation.
  const isolation = command.length === 1 ? '--test-isolation=none' : '--test-concurrency=1';
  const words = tests ? ['node', '--test', isolation, ...command] : command;
  return `exec ${words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')}\n`;
}
