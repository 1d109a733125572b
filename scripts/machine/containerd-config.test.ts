import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ContainerdConfig,
  parseContainerdRelease,
  renderContainerdConfig,
} from './containerd-config.ts';

const config: ContainerdConfig = {
  release: [1, 6],
  root: '/r',
  state: '/s',
  socket: '/s/containerd.sock',
  sandboxImage: 'localhost/pause:1',
  snapshotter: 'overlayfs',
  cniPlugins: '/opt/cni/bin',
  cniConfiguration: '/cni',
  runc: '/usr/sbin/runc',
  runcState: '/s/runc',
  restrictOomScore: true,
};

function section(text: string, header: string): string {
  return text.split('\n\n').find((part) => part.startsWith(header)) ?? '';
}

test('releases are read from what distributions print', () => {
  const debian = 'containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1';
  const docker = 'containerd containerd.io v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376';
  assert.deepEqual(parseContainerdRelease(debian), [1, 6]);
  assert.deepEqual(parseContainerdRelease(docker), [2, 1]);
  assert.throws(() => parseContainerdRelease('containerd unknown'), /no release number/);
});

test('releases before 2 get format 2 with one CRI plugin', () => {
  const text = renderContainerdConfig(config);
  assert.match(text, /^version = 2\nroot = "\/r"\nstate = "\/s"\n/);
  const cri = section(text, '["plugins"."io.containerd.grpc.v1.cri"]');
  assert.match(cri, /^sandbox_image = "localhost\/pause:1"$/m);
  assert.match(cri, /^restrict_oom_score_adj = true$/m);
  assert.match(cri, /^netns_mounts_under_state_dir = true$/m);
  const options = '["plugins"."io.containerd.grpc.v1.cri"."containerd"."runtimes"."runc"."options"]';
  assert.match(section(text, options), /^Root = "\/s\/runc"$/m);
});

test('releases from 2 on get format 3, and the machine-wide NRI socket is left alone', () => {
  const text = renderContainerdConfig({ ...config, release: [2, 0] });
  assert.match(text, /^version = 3\n/);
  assert.match(
    section(text, '["plugins"."io.containerd.cri.v1.images"."pinned_images"]'),
    /sandbox = "localhost\/pause:1"/,
  );
  assert.match(section(text, '["plugins"."io.containerd.nri.v1.nri"]'), /disable = true/);
  assert.match(
    section(text, '["plugins"."io.containerd.cri.v1.runtime"."cni"]'),
    /^bin_dir = "\/opt\/cni\/bin"$/m,
  );
});

test('from 2.1 on plugin directories are a list', () => {
  const text = renderContainerdConfig({ ...config, release: [2, 1] });
  assert.match(
    section(text, '["plugins"."io.containerd.cri.v1.runtime"."cni"]'),
    /^bin_dirs = \["\/opt\/cni\/bin"\]$/m,
  );
});
