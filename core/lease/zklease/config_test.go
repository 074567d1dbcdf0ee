package zklease

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core"
)

func TestNewRefusesBadSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"relative", Config{Prefix: "snowkey"}, `Config.Prefix is "snowkey"`},
		{"root", Config{Prefix: "/"}, `Config.Prefix is "/"`},
		{"slash at the end", Config{Prefix: "/snowkey/"}, `Config.Prefix is "/snowkey/"`},
		{"empty name", Config{Prefix: "/a//b"}, `Config.Prefix is "/a//b"`},
		{"dot", Config{Prefix: "/a/./b"}, `Config.Prefix is "/a/./b"`},
		{"dots", Config{Prefix: "/a/.."}, `Config.Prefix is "/a/.."`},
		{"the server's own", Config{Prefix: "/zookeeper"}, `Config.Prefix is "/zookeeper"`},
		{"in the server's own", Config{Prefix: "/zookeeper/x"}, `Config.Prefix is "/zookeeper/x"`},
		{"control character", Config{Prefix: "/a\x00"}, `Config.Prefix is "/a\x00"`},
		{"private use", Config{Prefix: "/a\uf000"}, `Config.Prefix is "/a\uf000"`},
		{"no UTF-8", Config{Prefix: "/a\xff"}, `Config.Prefix is "/a\xff"`},
		{"too long", Config{Prefix: "/" + strings.Repeat("a", 256)}, `want at most 256 bytes`},
		{"empty ACL", Config{ACL: []zk.ACL{}}, `Config.ACL is empty`},
		{"large ACL", Config{ACL: zk.DigestACL(zk.PermAll, strings.Repeat("user", 1024), "sesame")}, `want at most 4096`},
	} {
		_, err := New(&session{}, test.config)
		var bad *core.ValueError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "zklease: ") {
			t.Errorf("%s: New = error %v; want a *core.ValueError with %s", test.name, err, test.want)
		}
		if strings.Contains(err.Error(), "useruser") {
			t.Errorf("%s: New = error %v; want none of the ACL in it", test.name, err)
		}
	}
	for name, conn := range map[string]Conn{"nil": nil, "nil *zk.Conn": (*zk.Conn)(nil)} {
		var value *core.ValueError
		if _, err := New(conn, Config{}); !errors.As(err, &value) || value.Name != "conn" {
			t.Errorf("New(%s) = error %v; want a *core.ValueError about conn", name, err)
		}
	}
}

func TestNewAcceptsWhatZooKeeperDoes(t *testing.T) {
	for _, base := range []string{"", "/a", "/zookeepers", "/services/snow key/.hidden/ü", "/" + strings.Repeat("a", 255)} {
		if _, err := New(&session{}, Config{Prefix: base}); err != nil {
			t.Errorf("New(conn, Config{Prefix: %q}) = error %v; want a store", base, err)
		}
	}
}

func TestEveryZnodeHasTheACL(t *testing.T) {
	for name, test := range map[string]struct{ acl, want []zk.ACL }{
		"default": {nil, zk.WorldACL(zk.PermAll)},
		"digest":  {zk.DigestACL(zk.PermAll, "user", "sesame"), zk.DigestACL(zk.PermAll, "user", "sesame")},
	} {
		sv := newServer()
		s := newStore(t, &session{server: sv}, Config{Prefix: "/a/b", ACL: test.acl})
		if test.acl != nil {
			test.acl[0].Perms = 0 // the store has a copy
		}
		hold(t, s, claimOf(four, "me"))
		for path, n := range sv.nodes {
			if path != "/" && (len(n.acl) != 1 || n.acl[0] != test.want[0]) {
				t.Errorf("%s: the ACL of %s = %v; want %v", name, path, n.acl, test.want)
			}
		}
		if want := 2 + 1 + 2 + 4 + 1; len(sv.nodes)-1 != want {
			t.Errorf("%s: %d znodes; want %d", name, len(sv.nodes)-1, want)
		}
	}
}

func TestNamespacesOfDotsHaveTheirOwnPlaces(t *testing.T) {
	sv := newServer()
	s, _ := sv.open(t)
	for namespace, path := range map[string]string{
		".": "/s/%2E/3", "..": "/s/%2E%2E/3", "...": "/s/.../3", ".a": "/s/.a/3", strings.Repeat("a", 64): "/s/" + strings.Repeat("a", 64) + "/3",
	} {
		sp := four
		sp.Namespace = namespace
		hold(t, s, claimOf(sp, "me"))
		if got, _ := sv.peek(path); got != "v1 workers=4 state=complete" {
			t.Errorf("%s after Claim in namespace %q = %q; want it to be complete", path, namespace, got)
		}
	}
}
