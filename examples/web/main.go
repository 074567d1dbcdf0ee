// Web serves a page on which orders are listed, opened and created, from a SQLite file. The
// page needs no framework and loads nothing from other hosts.
//
//	go run ./examples/web
//
// It is to be copied from: store.go keeps an order with its lines in one transaction and lists
// orders by their keys, server.go is the API, page/client.ts what JavaScript has to know of a key.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

// run serves until ctx ends. Then it answers the requests under way, and returns.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("web", flag.ContinueOnError)
	address := flags.String("addr", "localhost:8080", "serve at this `address`")
	file := flags.String("db", "web.db", "keep the orders in this SQLite `file`")
	secretsFile := flags.String("secrets", "web.secrets", "keep the secrets of public names in this `file`, which is made if it is not there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	db, err := openDatabase(ctx, *file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	closing := context.WithoutCancel(ctx) // what follows has to work after Ctrl-C too
	gen, err := snowkey.Open(ctx, db.DB, snowkey.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(closing)) }()
	secrets, err := readSecrets(*secretsFile)
	if err != nil {
		return err
	}
	public, err := publicid.New(publicid.Config{Prefix: "order", Keys: secrets})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	api := &api{orders: &store{db, sqlxhelper.New(gen)}, public: public, keys: gen}
	server := &http.Server{Handler: api.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	_, _ = fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(closing, 10*time.Second)
	defer cancel()
	return server.Shutdown(draining)
}

// readSecrets returns the keys of the public form, one in hexadecimal per line. The first one
// writes and all of them read, so a new key goes on top, and the old ones stay for as long as
// there are links with them. If there is no file, it is made with a key.
func readSecrets(file string) (secrets [][]byte, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		text = []byte(hex.EncodeToString(secret) + "\n")
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.FieldsSeq(string(text)) {
		secret, err := hex.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
