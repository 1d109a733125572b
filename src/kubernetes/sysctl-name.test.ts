import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dottedSysctl } from './sysctl-name.ts';

test('the separator becomes a dot, and a dot in a part a slash', () => {
  assert.equal(dottedSysctl('kernel.shmmax'), 'kernel.shmmax');
  assert.equal(dottedSysctl('kernel/shmmax'), 'kernel.shmmax');
  assert.equal(dottedSysctl('net/ipv4/conf/eth0.5/x'), 'net.ipv4.conf.eth0/5.x');
  assert.equal(dottedSysctl('net.ipv4.conf.eth0/5.x'), 'net.ipv4.conf.eth0/5.x');
});
