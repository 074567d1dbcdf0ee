package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// pageSize is how many orders a page of the list has.
const pageSize = 10

// An api is what the page talks to.
//
//	POST /api/drafts         a key for an order that is not stored yet
//	PUT  /api/orders/{name}  store it
//	GET  /api/orders/{name}  one order
//	GET  /api/orders         the newest orders; ?before=KEY or ?after=KEY: other pages
//
// {name} is the public form of a key. It reveals neither when the order was made nor how many there
// are, and because it cannot be guessed, the server hands out every name that works. Answers also
// have the key, as this page is for the staff of the shop; a page for customers would have the name
// alone. The example has no login. With ?keys=numbers keys are numbers, to show what they lose.
type api struct {
	orders *store
	public *publicid.Codec
	keys   interface {
		Next(context.Context) (types.Snowflake, error)
	}
}

//go:embed page/*.html page/*.css page/*.js page/*.svg
var embedded embed.FS

func (a *api) handler() http.Handler {
	files, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // not a path
	}
	index := func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "index.html") }

	mux := http.NewServeMux()
	mux.Handle("POST /api/drafts", answer(a.draft))
	mux.Handle("PUT /api/orders/{name}", answer(a.save))
	mux.Handle("GET /api/orders/{name}", answer(a.open))
	mux.Handle("GET /api/orders", answer(a.list))
	mux.HandleFunc("GET /new", index) // the page knows what to show
	mux.HandleFunc("GET /orders/{name}", index)
	mux.Handle("GET /", http.FileServerFS(files))

	// A page of another site must not save orders in the name of who looks at it.
	guarded := http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(mux, 1<<20))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-cache")
		guarded.ServeHTTP(w, r)
	})
}

// An answer returns a body to be sent as JSON, and the status.
type answer func(*http.Request) (status int, body any, err error)

// A refusal is an error that the client is told.
type refusal struct {
	status int
	reason string
}

func (e *refusal) Error() string { return e.reason }

func (f answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body, err := f(r)
	if err != nil {
		refused := &refusal{http.StatusInternalServerError, "internal error"}
		switch {
		case errors.As(err, &refused):
		case errors.Is(err, errUnknown), errors.Is(err, publicid.ErrInvalid): // clients cannot tell which
			refused = &refusal{http.StatusNotFound, errUnknown.Error()}
		case errors.Is(err, errDiffers):
			refused = &refusal{http.StatusConflict, errDiffers.Error()}
		case r.Context().Err() == nil: // otherwise the client has left
			slog.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
		}
		status, body = refused.status, map[string]string{"error": refused.reason}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // not with these types
	}
	if r.URL.Query().Get("keys") == "numbers" {
		// As Twitter's API did it. This is for the switch on the page alone; a program sends what
		// package types writes. Within a string quotes have backslashes, so nothing is replaced there.
		text = stringKeys.ReplaceAll(text, []byte(`"id":$1,"id_str":"$1"`))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

var stringKeys = regexp.MustCompile(`"id":"(\d+)"`)

// draft hands out the key of an order before the order is there. It travels in its public form,
// so a client can neither invent one nor take that of somebody else. A key that is never used
// costs nothing.
func (a *api) draft(r *http.Request) (int, any, error) {
	id, err := a.keys.Next(r.Context())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]string{"name": a.public.Encode(id)}, nil
}

func (a *api) save(r *http.Request) (int, any, error) {
	id, err := a.public.Decode(r.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	order, err := readOrder(r.Body)
	if err != nil {
		return 0, nil, err
	}
	order.ID = types.ID[Order](id)
	stored, created, err := a.orders.save(r.Context(), order)
	stored.Name = a.public.Encode(id)
	if created {
		return http.StatusCreated, stored, err
	}
	return http.StatusOK, stored, err
}

func (a *api) open(r *http.Request) (int, any, error) {
	id, err := a.public.Decode(r.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	order, err := a.orders.order(r.Context(), types.ID[Order](id))
	order.Name = a.public.Encode(id)
	return http.StatusOK, order, err
}

func (a *api) list(r *http.Request) (int, any, error) {
	var before, after types.NullID[Order]
	query := r.URL.Query()
	if err := errors.Join(before.UnmarshalText([]byte(query.Get("before"))), after.UnmarshalText([]byte(query.Get("after")))); err != nil {
		return 0, nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	if before.Valid && after.Valid {
		return 0, nil, &refusal{http.StatusBadRequest, "before and after together, want one of them"}
	}
	page, err := a.orders.page(r.Context(), before, after, pageSize)
	for i, o := range page.Orders {
		page.Orders[i].Name = a.public.Encode(o.ID.Snowflake())
	}
	return http.StatusOK, page, err
}

// readOrder reads what a client sends, and refuses what no form sends.
func readOrder(body io.Reader) (o Order, err error) {
	var input struct {
		Customer string `json:"customer"`
		Lines    []struct {
			SKU      string `json:"sku"`
			Quantity int    `json:"quantity"`
		} `json:"lines"`
	}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&input); err != nil {
		return o, &refusal{http.StatusBadRequest, err.Error()}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return o, &refusal{http.StatusBadRequest, "more than one JSON value"}
	}
	o.Customer = strings.TrimSpace(input.Customer)
	problem := ""
	switch {
	case !filled(o.Customer):
		problem = "customer: want 1 to 100 characters"
	case len(input.Lines) < 1 || len(input.Lines) > 100:
		problem = fmt.Sprintf("%d lines, want 1 to 100", len(input.Lines))
	}
	for i, l := range input.Lines {
		line := Line{SKU: strings.TrimSpace(l.SKU), Quantity: l.Quantity}
		if !filled(line.SKU) || line.Quantity < 1 || line.Quantity > 10_000 {
			problem = fmt.Sprintf("line %d: want an SKU of 1 to 100 characters and a quantity of 1 to 10000", i+1)
		}
		o.Lines = append(o.Lines, line)
	}
	if problem != "" {
		return Order{}, &refusal{http.StatusUnprocessableEntity, problem}
	}
	return o, nil
}

// filled reports whether a field of the form is filled in.
func filled(text string) bool { return text != "" && utf8.RuneCountInString(text) <= 100 }
