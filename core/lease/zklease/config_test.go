package zklease

import (
	"errors"
	"slices"
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
		{"delete character", Config{Prefix: "/a\x7f"}, `Config.Prefix is "/a\x7f"`},
		{"private use", Config{Prefix: "/a\uf000"}, `Config.Prefix is "/a\uf000"`},
		{"special", Config{Prefix: "/a\ufff0"}, `Config.Prefix is "/a\ufff0"`},
		{"no UTF-8", Config{Prefix: "/a\xff"}, `Config.Prefix is "/a\xff"`},
		{"too long", Config{Prefix: "/" + strings.Repeat("a", 256)}, `want at most 256 bytes`},
		{"empty ACL", Config{ACL: []zk.ACL{}}, `Config.ACL is empty`},
		{"large ACL", Config{ACL: zk.DigestACL(zk.PermAll, strings.Repeat("user", 1024), "sesame")}, `want at most 4096`},
	} {
		_, err := New(faulty{}, test.config)
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
	for _, base := range []string{"", "/a", "/zookeepers", "/services/snow key/.hidden/ü", "/\uf900\U00010000", "/" + strings.Repeat("a", 255)} {
		if _, err := New(faulty{}, Config{Prefix: base}); err != nil {
			t.Errorf("New(conn, Config{Prefix: %q}) = error %v; want a store", base, err)
		}
	}
}

func TestEveryZnodeHasTheACL(t *testing.T) {
	for name, test := range map[string]struct{ acl, want []zk.ACL }{
		"default": {nil, zk.WorldACL(zk.PermAll)},
		"digest":  {zk.DigestACL(zk.PermAll, "user", "sesame"), zk.DigestACL(zk.PermAll, "user", "sesame")},
	} {
		p := newSite(t, loginAs(t, "user", "sesame"))
		p.config.ACL = test.acl
		s := p.below("/a/b").store()
		if test.acl != nil {
			test.acl[0].Perms = 0 // the store has a copy
		}
		hold(t, s, claimOf(four, "me"))
		znodes := 0
		var walk func(path string)
		walk = func(path string) {
			znodes++
			acl, stat, err := p.conn.GetACL(p.config.Prefix + path)
			if err != nil || !slices.Equal(acl, test.want) || stat.EphemeralOwner != 0 {
				t.Errorf("%s: the ACL of %q = %v, %v, %+v; want %v, and a persistent znode", name, path, acl, err, stat, test.want)
			}
			for _, name := range p.names(path) {
				walk(path + "/" + name)
			}
		}
		walk("")
		if want := 3 + 1 + 2 + 4 + 1; znodes != want { // prefix, clock, space, rows, record
			t.Errorf("%s: %d znodes; want %d", name, znodes, want)
		}
	}
}

func TestNamespacesOfDotsHaveTheirOwnPlaces(t *testing.T) {
	p := newSite(t)
	s := p.store()
	for namespace, path := range map[string]string{
		".": "/%2E/3", "..": "/%2E%2E/3", "...": "/.../3", ".a": "/.a/3", strings.Repeat("a", 64): "/" + strings.Repeat("a", 64) + "/3",
	} {
		sp := four
		sp.Namespace = namespace
		hold(t, s, claimOf(sp, "me"))
		if got, _ := p.get(path); got != "v1 workers=4 state=complete" {
			t.Errorf("%s after Claim in namespace %q = %q; want it to be complete", path, namespace, got)
		}
	}
}
