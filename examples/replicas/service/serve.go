package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// createOrder answers with the key of a new order.
func createOrder(gen *core.Generator) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, err := gen.Next(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, id)
	})
}

// serve answers requests until ctx ends. Then it is not ready, but answers for as long as
// notice, in which whoever sends requests turns to other processes. Last it takes no new
// connection, and returns when the requests under way are done.
func serve(ctx context.Context, listener net.Listener, worker *lease.Lease, gen *core.Generator, notice time.Duration) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if err := cmp.Or(ctx.Err(), worker.Check(r.Context())); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.Handle("POST /orders", createOrder(gen))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close") // the client's next request goes elsewhere
		}
		mux.ServeHTTP(w, r)
	})}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	time.Sleep(notice)
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return server.Shutdown(draining)
}

// What follows is on the page, docs/workers.md.

// run takes a worker number, serves until SIGTERM, and gives the number back.
func run(ctx context.Context, listener net.Listener, store lease.Store, notice time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	worker, err := lease.Acquire(ctx, store, lease.Config{
		Namespace:   "shop",
		Holder:      os.Getenv("POD_NAME"), // for people who look at the rows
		AcquireWait: time.Minute,           // if no number is free yet
	})
	if err != nil {
		return err
	}
	gen, err := core.New(core.Config{Worker: worker})
	if err != nil {
		return errors.Join(err, worker.Close(context.WithoutCancel(ctx)))
	}
	err = serve(ctx, listener, worker, gen, notice)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, gen.Close(closing)) // closes the lease too
}
