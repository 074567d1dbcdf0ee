package etcdlease

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// dated answers every request with a status and a date that is ahead of the clock.
func dated(t *testing.T, ahead time.Duration, status int) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("the server is asked for %s; want /version", r.URL.Path)
		}
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func endpoints(all ...string) func() []string { return func() []string { return all } }

func TestClockThatAgreesWithTheServerIsNotMoved(t *testing.T) {
	clock := serverClock(endpoints(dated(t, 0, http.StatusOK)), nil)
	before := time.Now()
	now, err := clock(t.Context())
	if err != nil || now.Before(before) || now.After(time.Now()) {
		t.Errorf("the clock shows %v, %v; want a time since %v", now, err, before)
	}
}

func TestClockIsMovedToTheServers(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusFound} {
			clock := serverClock(endpoints(dated(t, ahead, status)), nil)
			before := time.Now()
			now, err := clock(t.Context())
			earliest, latest := before.Add(ahead-time.Second), time.Now().Add(ahead+time.Second)
			if err != nil || now.Before(earliest) || now.After(latest) {
				t.Errorf("the clock, by a server that is ahead by %v and answers %d, shows %v, %v; want %v..%v", ahead, status, now, err, earliest, latest)
			}
		}
	}
}

func TestMomentIsMovedToTheNearestOne(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	for _, test := range []struct{ t, earliest, latest, want int64 }{
		{5, 3, 7, 5}, {3, 3, 7, 3}, {7, 3, 7, 7}, {2, 3, 7, 3}, {8, 3, 7, 7},
	} {
		if got := within(at(test.t), at(test.earliest), at(test.latest)); !got.Equal(at(test.want)) {
			t.Errorf("within(%d, %d, %d) = %v; want %d", test.t, test.earliest, test.latest, got.Unix(), test.want)
		}
	}
}

func TestOneServerThatAnswersWillDo(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	clock := serverClock(endpoints("127.0.0.1:1", silent.Addr().String(), dated(t, time.Hour, http.StatusOK)), nil)
	if now, err := clock(t.Context()); err != nil || time.Until(now) < 50*time.Minute {
		t.Errorf("the clock shows %v, %v; want that of the server that answers, an hour ahead", now, err)
	}
}

func TestClockSaysWhatToSetIfNoServerShowsOne(t *testing.T) {
	dateless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }))
	defer dateless.Close()
	for _, endpoint := range []string{"127.0.0.1:1", dateless.URL, "unix:///run/etcd.sock", "http://a b"} {
		_, err := serverClock(endpoints(endpoint), nil)(t.Context())
		if !errors.Is(err, errNoHTTP) {
			t.Errorf("the clock of %s = error %v; want one that names Config.TLS and Config.Clock", endpoint, err)
		}
	}
	if _, err := serverClock(endpoints(), nil)(t.Context()); !errors.Is(err, errNoHTTP) {
		t.Errorf("the clock of no server = error %v; want one that names Config.Clock", err)
	}
}

func TestEndpointWithoutSchemeIsAskedAsTheClientAsksIt(t *testing.T) {
	for _, test := range []struct {
		endpoint string
		secure   bool
		want     string
	}{
		{"etcd-0:2379", false, "http://etcd-0:2379/version"},
		{"etcd-0:2379", true, "https://etcd-0:2379/version"},
		{"http://etcd-0:2379", true, "http://etcd-0:2379/version"},
		{"https://etcd-0:2379/", false, "https://etcd-0:2379/version"},
	} {
		if got := versionURL(test.endpoint, test.secure); got != test.want {
			t.Errorf("versionURL(%q, %v) = %q; want %q", test.endpoint, test.secure, got, test.want)
		}
	}
}

func TestClaimByAWrongClockIsRefused(t *testing.T) {
	p := shared(t)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		s, err := New(p.client(t), Config{Prefix: p.prefix, Clock: func(context.Context) (time.Time, error) { return time.Now().Add(ahead), nil }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Claim(t.Context(), claimOf(four)); !errors.Is(err, leasestore.ErrClockSkew) {
			t.Errorf("Claim while the store's clock is ahead by %v = %v; want it refused", ahead, err)
		}
	}
	if all := dump(t, p); len(all) != 0 {
		t.Errorf("keys after refused claims = %q; want none", all)
	}
}

// The clock is read before the wait for the servers' time, which must not count as skew.
func TestWaitingForTheTimeIsNoDifferenceBetweenClocks(t *testing.T) {
	p := shared(t)
	// A busy machine may stop the process between any two readings of a clock, which then differ by
	// as much. A refusal is therefore a fault of the store only if it comes however long the skew is.
	for skew := leasestore.Millis(200); ; skew *= 4 {
		s, err := New(p.client(t), Config{Prefix: p.prefix, Clock: func(context.Context) (time.Time, error) {
			time.Sleep((skew + skew/2).Duration())
			return time.Now(), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		c := claimOf(four)
		c.Skew = skew
		_, err = s.Claim(t.Context(), c)
		if errors.Is(err, leasestore.ErrClockSkew) && skew < 10_000 {
			continue
		}
		if err != nil {
			t.Errorf("Claim that has waited for the time longer than Skew = %v; want a row", err)
		}
		return
	}
}

func TestErrorOfTheClockIsReturned(t *testing.T) {
	p := shared(t)
	broken := errors.New("broken")
	s, err := New(p.client(t), Config{Prefix: p.prefix, Clock: func(context.Context) (time.Time, error) { return time.Time{}, broken }})
	if err != nil {
		t.Fatal(err)
	}
	_, claim := s.Claim(t.Context(), claimOf(four))
	_, renew := s.Renew(t.Context(), leasestore.Renewal{Space: four})
	_, _, rows := s.Rows(t.Context(), four)
	for call, err := range map[string]error{"Claim": claim, "Renew": renew, "Rows": rows} {
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "etcdlease: ask for the time: ") {
			t.Errorf("%s without a clock = %v; want its error", call, err)
		}
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, config *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// Servers that require client certificates require them of the request for the time too.
func TestStoreWorksWithCertificates(t *testing.T) {
	certFile, keyFile, config := certificate(t)
	server := startServer(t, "https", clientv3.Config{TLS: config}, "--cert-file", certFile, "--key-file", keyFile, "--trusted-ca-file", certFile, "--client-cert-auth")
	s, err := New(server.client(t), Config{TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	c := claimOf(four)
	r := hold(t, s, c)
	if _, err := s.Renew(t.Context(), renewalOf(c, r)); err != nil {
		t.Errorf("Renew = %v; want no error", err)
	}

	without, err := New(server.client(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Claim(t.Context(), claimOf(four)); !errors.Is(err, errNoHTTP) {
		t.Errorf("Claim without Config.TLS = %v; want an error that names it", err)
	}
}
