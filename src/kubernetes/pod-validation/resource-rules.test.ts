import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

const r = 'spec.containers[0].resources';
const resources = (limits: object, requests: object = {}) => ({ [r]: { limits, requests } });

describe('resources of containers', () => {
  testCases([
    [resources({ cpu: 1, memory: '1Gi', 'ephemeral-storage': '1Gi' }, { cpu: '500m' })],
    [resources({ cpu: '1' }, { cpu: '1001m' }), `Invalid ${r}.requests[cpu]`],
    [resources({ cpu: '-1' }), `Invalid ${r}.limits[cpu]`],
    [resources({ disk: '1' }), `Invalid ${r}.limits[disk]`],
    [resources({ 'a/b/c': '1' }), `Invalid ${r}.limits[a/b/c]`],
    [resources({ 'requests.example.com/x': '1' }), `Invalid ${r}.limits[requests.example.com/x]`],
    [resources({ 'example.com/gpu': '2' })],
    [resources({ 'example.com/gpu': '1500m' }), `Invalid ${r}.limits[example.com/gpu]`],
    [resources({}, { 'example.com/gpu': '1' }), `Required ${r}.limits[example.com/gpu]`],
    [
      resources({ 'example.com/gpu': '2' }, { 'example.com/gpu': '1' }),
      `Invalid ${r}.requests[example.com/gpu]`,
    ],
    [resources({ 'hugepages-2Mi': '4Mi', cpu: '1' })],
    [resources({ 'hugepages-2Mi': '4Mi' }), `Forbidden ${r}`],
    [resources({ 'hugepages-2Mi': '3Mi', cpu: '1' }), `Invalid ${r}.limits[hugepages-2Mi]`],
    [resources({ 'hugepages-x': '3Mi', cpu: '1' }), `Invalid ${r}.limits[hugepages-x]`],
    [resources({ cpu: '1' }, { 'hugepages-2Mi': '2Mi' }), `Required ${r}.limits[hugepages-2Mi]`],
  ]);
});

describe('claims', () => {
  const claim = { 'spec.resourceClaims': [{ name: 'gpu', resourceClaimName: 'g' }] };
  testCases([
    [{ ...claim, [`${r}.claims`]: [{ name: 'gpu' }] }],
    [
      {
        ...claim,
        [`${r}.claims`]: [
          { name: 'gpu', request: 'a' },
          { name: 'gpu', request: 'b' },
        ],
      },
    ],
    [{ ...claim, [`${r}.claims`]: [{ name: 'gpu' }, { name: 'gpu' }] }, `Duplicate ${r}.claims[1]`],
    [
      { ...claim, [`${r}.claims`]: [{ name: 'gpu' }, { name: 'gpu', request: 'a' }] },
      `Duplicate ${r}.claims[1]`,
    ],
    [{ ...claim, [`${r}.claims`]: [{ name: 'fpga' }] }, `NotFound ${r}.claims[0].name`],
    [{ ...claim, [`${r}.claims`]: [{}] }, `Required ${r}.claims[0].name`],
    [{ 'spec.resourceClaims': [{ name: 'gpu' }] }, 'Invalid spec.resourceClaims[0]'],
    [
      { 'spec.resourceClaims': [{ name: 'gpu', resourceClaimName: 'g', resourceClaimTemplateName: 't' }] },
      'Invalid spec.resourceClaims[0]',
    ],
    [
      {
        'spec.resourceClaims': [
          { name: 'a', resourceClaimName: 'g' },
          { name: 'a', resourceClaimName: 'G' },
        ],
      },
      'Duplicate spec.resourceClaims[1].name',
      'Invalid spec.resourceClaims[1].resourceClaimName',
    ],
  ]);
});

describe('pod-level resources', () => {
  testCases([
    [
      {
        'spec.resources': { limits: { cpu: '1', memory: '1Gi' } },
        ...resources({ cpu: '1' }, { cpu: '500m' }),
      },
    ],
    [
      { 'spec.resources': { limits: { cpu: '1' } }, ...resources({ cpu: '2' }, { cpu: '1' }) },
      `Invalid ${r}.limits[cpu]`,
    ],
    [
      { 'spec.resources': { requests: { cpu: '1' } }, ...resources({}, { cpu: '2' }) },
      'Invalid spec.resources.requests[cpu]',
    ],
    [
      { 'spec.resources': { limits: { 'ephemeral-storage': '1' } } },
      'NotSupported spec.resources.limits[ephemeral-storage]',
    ],
    [{ 'spec.resources': { claims: [] } }, 'Forbidden spec.resources.claims'],
    [
      { 'spec.resources': { limits: { cpu: '1' }, requests: { cpu: '2' } } },
      'Invalid spec.resources.requests[cpu]',
    ],
  ]);
});

describe('overhead and resize policy', () => {
  const p = 'spec.containers[0].resizePolicy';
  testCases([
    [{ 'spec.overhead': { cpu: '100m' } }],
    [
      { 'spec.overhead': { cpu: '-1', disk: '1' } },
      'Invalid spec.overhead[cpu]',
      'Invalid spec.overhead[disk]',
    ],
    [{ [p]: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }] }],
    [
      { [p]: [{ resourceName: 'gpu', restartPolicy: 'Maybe' }] },
      `NotSupported ${p}[0].resourceName`,
      `NotSupported ${p}[0].restartPolicy`,
    ],
    [
      {
        [p]: [
          { resourceName: 'cpu', restartPolicy: 'NotRequired' },
          { resourceName: 'cpu', restartPolicy: 'NotRequired' },
        ],
      },
      `Duplicate ${p}[1]`,
    ],
    [
      { 'spec.restartPolicy': 'Never', [p]: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] },
      `Invalid ${p}[0].restartPolicy`,
    ],
  ]);
});
