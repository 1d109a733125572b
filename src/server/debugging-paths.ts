/** What only looks into pods and machine when debugging is wanted, and else says that it is not. */
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

const paths = [
  '/run/',
  '/exec/',
  '/attach/',
  '/portForward/',
  '/containerLogs/',
  '/runningpods/',
  '/debug/pprof/',
  '/logs/',
];

/** Answers everything below them with 405. */
export const disabledDebugging: readonly NodeRoute[] = paths.map((path) => ({
  path,
  handle: ({ response }) => sendText(response, 405, 'Debug endpoints are disabled.\n'),
}));
