// Package filesystem reports whether a file system is fit to keep leases on, and whether a file has
// several paths.
package filesystem

import "fmt"

// Check returns an error if leases must not be kept at path, and a warning if they may be lost
// there. FUSE, which may be a network file system, is an error unless allowFUSE is set, and then a
// warning. File systems are recognized on Linux only.
func Check(path string, allowFUSE bool) (warning string, err error) {
	k, err := Kind(path)
	if err != nil {
		return "", err
	}
	return suits(k, allowFUSE)
}

// Kind returns the kind of the file system of a path. Tests replace it, see filesystemtest.On, because
// few file systems can be mounted by a test.
var Kind = kind

// FUSE is the kind of what a program serves, as sshfs and LiteFS do.
const FUSE = 0x65735546

// shared are file systems that several hosts may mount at once. On some of them flock holds only
// between the processes of one host, on others it is ignored, or passed on to a server that drops
// it when the connection breaks. One host may not see what another has synced.
var shared = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x5346414f: "AFS",
	0x6b414653: "AFS", // the kernel's own
	0x19830326: "BeeGFS",
	0x20030528: "OrangeFS",
	0xaad7aaea: "PanFS",
	0xbeefdead: "StorNext",
	0x61636673: "ACFS",
	0x786f4256: "a shared folder of VirtualBox",
	0xbacbacbc: "a shared folder of VMware",
	0x7c7c6673: "a shared folder of Parallels",
	0x73757245: "Coda",
	0x0000564c: "NCP",
}

// fleeting are file systems that may lose what was synced: in memory, or the layer of a container.
var fleeting = map[uint32]string{
	0x01021994: "tmpfs",
	0x858458f6: "ramfs",
	0x794c7630: "overlay",
	0x61756673: "aufs",
}

// suits is Check for a kind of file system.
func suits(kind uint32, allowFUSE bool) (warning string, err error) {
	name, isShared := shared[kind]
	switch {
	case isShared:
		return "", fmt.Errorf("it is on %s, which other hosts may share: want a file system of this host alone", name)
	case kind == FUSE && !allowFUSE:
		return "", fmt.Errorf("it is on FUSE, which may be shared with other hosts, as sshfs is: want a file system of this host alone, or Config.AllowFUSE if this is one")
	case kind == FUSE:
		return "it is on FUSE; if other hosts share it, or it forgets what it has synced, IDs may repeat", nil
	}
	if name, ok := fleeting[kind]; ok {
		return "it is on " + name + "; if it is emptied, by a reboot or with its container, IDs may repeat", nil
	}
	return "", nil
}
