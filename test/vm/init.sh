#!/bin/busybox sh
# First process of the virtual machine. Sets it up as a distribution with cgroup v2 would, runs /run/vm/command in
# the project's folder, sends its output and exit code to the host, and switches the machine off.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 TMPDIR=/tmp
export NODE_OPTIONS='--import /run/vm/stripped-sources.mjs'

mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sys /sys
mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm /dev/hugepages /dev/mqueue
mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev shm /dev/shm
mount -t mqueue mqueue /dev/mqueue
mount -t hugetlbfs hugetlbfs /dev/hugepages
mount -t securityfs securityfs /sys/kernel/security
mount -t bpf bpf /sys/fs/bpf
mount --make-rshared /

# The rest of the modules is loaded by the kernel when it asks for them.
modprobe -a -q virtio_console virtio_net overlay br_netfilter
for port in /sys/class/virtio-ports/*; do
  read -r name < "$port/name"
  eval "$name=/dev/${port##*/}"
done
exec 3> "$result"
echo ready >&3

hostname kubelet-vm
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ulimit -n 524288

# Controllers as systemd enables them, and the command in a group of its own as a service would be.
cd /sys/fs/cgroup
for controller in $(cat cgroup.controllers); do echo "+$controller" > cgroup.subtree_control; done
mkdir -p system.slice/command.service
for controller in $(cat cgroup.controllers); do echo "+$controller" > system.slice/cgroup.subtree_control; done

# At its path on the host, so that messages name files that exist there and its compile cache holds.
read -r KUBELET_VM_PROJECT < /run/vm/project
export KUBELET_VM_PROJECT
mkdir -p "$KUBELET_VM_PROJECT"
mount -t ext4 -o noatime /dev/vdb "$KUBELET_VM_PROJECT"
cd "$KUBELET_VM_PROJECT"
mkfifo /run/vm/output
cat /run/vm/output > "$output" &
sender=$!
/bin/sh -c 'echo $$ > /sys/fs/cgroup/system.slice/command.service/cgroup.procs; exec setsid /bin/sh /run/vm/command' \
  < /dev/null > /run/vm/output 2>&1 3>&-
code=$?

# A process left behind would hold the output open for ever: what is in the pipe by now is sent, no more.
for _ in $(seq 30); do
  [ -d "/proc/$sender" ] || break
  usleep 100000
done
sync
echo "exit $code" >&3
# The host ends the emulator once it has read the code; this is for when nobody does.
poweroff -f
