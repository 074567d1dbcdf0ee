package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
)

// start runs the program until stop is called, which returns the error of run.
func start(t *testing.T, dir string) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "web.db"), "-secrets", filepath.Join(dir, "web.secrets")}, write)
		_ = write.CloseWithError(err)
		ended <- err
	}()
	if _, err := fmt.Fscanln(read, &url); err != nil {
		t.Fatalf("run() wrote no address: %v", err)
	}
	return url, func() error { cancel(); return <-ended }
}

// send sends a request, and returns the status and the body.
func send(ctx context.Context, t *testing.T, method, url string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue") // the body is sent when somebody reads it
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// nameIn returns the name in an answer.
func nameIn(answer string) string {
	_, rest, _ := strings.Cut(answer, `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func TestAShutdownAnswersTheRequestUnderWay(t *testing.T) {
	dir := t.TempDir()
	url, stop := start(t, dir)
	_, draft := send(t.Context(), t, "POST", url+"/api/drafts", nil)
	path := "/api/orders/" + nameIn(draft)

	// The server is reading the body when it is told to stop.
	body, send100 := io.Pipe()
	reading := make(chan struct{})
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	status := make(chan int, 1)
	go func() {
		code, _ := send(trace, t, "PUT", url+path, body)
		status <- code
	}()
	<-reading
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	if _, err := io.WriteString(send100, cups); err != nil {
		t.Fatal(err)
	}
	_ = send100.Close()
	if got := <-status; got != http.StatusCreated {
		t.Errorf("PUT during a shutdown = %d; want 201", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("run() = %v; want no error", err)
	}

	url, stop = start(t, dir)
	if code, text := send(t.Context(), t, "GET", url+path, nil); code != http.StatusOK || !strings.Contains(text, `"Aalto"`) {
		t.Errorf("GET of the order after a restart = %d %s; want the order", code, text)
	}
	if err := stop(); err != nil {
		t.Errorf("run() = %v; want no error", err)
	}
}

func TestNamesOutliveTheirSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.secrets")
	codec := func() *publicid.Codec {
		t.Helper()
		secrets, err := readSecrets(file)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := publicid.New(publicid.Config{Prefix: "order", Keys: secrets})
		if err != nil {
			t.Fatal(err)
		}
		return codec
	}
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := codec().Encode(5)
	if got := codec().Encode(5); got != name {
		t.Errorf("after a restart the name is %s; want %s", got, name)
	}
	// Known secrets, because of random ones one in 32 has the letter of another, which is refused.
	old := strings.Repeat("a5", 32)
	write(old)
	name = codec().Encode(5)
	write(strings.Repeat("5a", 32), old)
	if got, err := codec().Decode(name); err != nil || got != 5 {
		t.Errorf("Decode(%s) with a new secret on top = %d, %v; want 5", name, got, err)
	}
	if got := codec().Encode(5); got == name {
		t.Errorf("with a new secret on top the name is still %s; want another", got)
	}
	write("no hex")
	if _, err := readSecrets(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("readSecrets(%q) = %v; want an error that names the file", "no hex", err)
	}
}
