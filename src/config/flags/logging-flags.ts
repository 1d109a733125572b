/** What is logged and how. */
import { configFlag, flag } from './flag.ts';

export const loggingFlags = {
  'log-flush-frequency': flag('duration', '5s', 'Log buffer flush period', {
    field: 'logging.flushFrequency',
  }),
  'log-json-info-buffer-size': configFlag(
    'quantity',
    '0',
    'logging.options.json.infoBufferSize',
    'Buffer for the info stream',
  ),
  'log-json-split-stream': configFlag(
    'bool',
    false,
    'logging.options.json.splitStream',
    'Errors to stderr and info to stdout',
  ),
  'log-text-info-buffer-size': configFlag(
    'quantity',
    '0',
    'logging.options.text.infoBufferSize',
    'Buffer for the info stream',
  ),
  'log-text-split-stream': configFlag(
    'bool',
    false,
    'logging.options.text.splitStream',
    'Errors to stderr and info to stdout',
  ),
  'logging-format': configFlag('string', 'text', 'logging.format', 'Log output format'),
  v: flag('Level', 0, 'Log level', { shorthand: 'v', field: 'logging.verbosity' }),
  vmodule: flag('pattern=N,...', [], 'Per-file log levels', { field: 'logging.vmodule' }),
};
