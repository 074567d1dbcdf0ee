package filelease

import "fmt"

// shared are file systems that several hosts may have mounted at once. On these
// flock is a matter between processes of one host, or is passed on to a server
// that drops it when the connection breaks, or is ignored; and what one host has
// synced another may not see.
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

// fleeting are file systems that may not outlive what they keep: memory, the
// layer of one container, and FUSE, which may be anything.
var fleeting = map[uint32]string{
	0x01021994: "tmpfs",
	0x858458f6: "ramfs",
	0x794c7630: "overlay",
	0x61756673: "aufs",
	0x65735546: "FUSE",
}

// suits returns an error if state must not be kept on a file system of this kind,
// and a warning if it may be lost there.
func suits(kind uint32) (warning string, err error) {
	if name, ok := shared[kind]; ok {
		return "", fmt.Errorf("it is on %s, which other hosts may share: want a file system of this host alone", name)
	}
	if name, ok := fleeting[kind]; ok {
		return "the directory is on " + name + "; if it is emptied, by a reboot or with its container, IDs may repeat", nil
	}
	return "", nil
}
