/** For tests of validation: a valid pod, changed at given paths, and the errors it then has. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { defaultPod } from '../pod-defaults.ts';
import type { PodManifest } from '../types.ts';
import { type FieldError, fieldPathSegments } from './field-error.ts';
import { type PodValidationOptions, validatePod } from './pod-validation.ts';

/** Values by field path (`spec.containers[0].image`); undefined removes the field. */
export type Changes = Readonly<Record<string, unknown>>;

/** One change of the valid pod, and the errors as `Type path`; none when it stays valid. */
export type Case = readonly [changes: Changes, ...errors: string[]];

/** A pod with one container, one sidecar-free init container and two volumes; it is valid. */
export function podWith(changes: Changes): PodManifest {
  const pod: PodManifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      initContainers: [{ name: 'setup', image: 'registry.example/setup:1' }],
      containers: [{ name: 'app', image: 'registry.example/app:1' }],
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'disk', persistentVolumeClaim: { claimName: 'c' } },
      ],
    },
  };
  for (const [path, value] of Object.entries(changes)) setAt(pod, fieldPathSegments(path), value);
  return pod;
}

type Container = Record<string | number, unknown>;

function setAt(root: object, segments: readonly (string | number)[], value: unknown): void {
  let place = root as Container;
  segments.forEach((segment, index) => {
    if (index === segments.length - 1) {
      if (value === undefined) delete place[segment];
      else place[segment] = value;
    } else {
      place[segment] ??= typeof segments[index + 1] === 'number' ? [] : {};
      place = place[segment] as Container;
    }
  });
}

function errorsOf(manifest: PodManifest, options?: PodValidationOptions): FieldError[] {
  return validatePod(defaultPod(manifest), options);
}

/** Checks that each case, after defaulting, has exactly the errors it names. */
export function testCases(cases: readonly Case[], options?: PodValidationOptions): void {
  for (const [changes, ...expected] of cases) {
    const name = JSON.stringify(changes);
    const outcome = expected.length > 0 ? 'is refused' : 'is accepted';
    void it(`${name.length > 110 ? `${name.slice(0, 110)}…` : name} ${outcome}`, () => {
      const found = errorsOf(podWith(changes), options).map(({ type, path }) => `${type} ${path}`);
      assert.deepEqual(found, expected);
    });
  }
}
