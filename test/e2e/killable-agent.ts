/**
 * The agent with a switch that kills it, as SIGKILL from outside would, right before or after the first
 * action of a kind: `KUBELET_TS_TEST_KILL_AT=before:create-sandbox`.
 */
import { commandRun } from '../../src/cli/command-run.ts';
import { parseCommand } from '../../src/cli/parse-command.ts';
import { diskFiles } from '../../src/config/disk-files.ts';

const killAt = process.env['KUBELET_TS_TEST_KILL_AT'];
const command = parseCommand(process.argv.slice(2));
if (command.kind !== 'run') throw new Error(`not a command to run: ${command.kind}`);

process.exitCode = await commandRun({
  ...command,
  files: { cwd: process.cwd(), ...diskFiles },
  color: false,
  onStep: (moment, action) => {
    if (`${moment}:${action.kind}` === killAt) process.kill(process.pid, 'SIGKILL');
  },
});
