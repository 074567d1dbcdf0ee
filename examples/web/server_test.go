package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A shop is the API with a database of its own.
type shop struct {
	t   *testing.T
	api *api
	http.Handler
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db, err := openDatabase(t.Context(), filepath.Join(t.TempDir(), "a?b%.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	gen := coretest.NewGenerator(coretest.Config{})
	public, err := publicid.New(publicid.Config{Prefix: "order", Keys: [][]byte{make([]byte, 16)}})
	if err != nil {
		t.Fatal(err)
	}
	a := &api{orders: &store{db, sqlxhelper.New(gen)}, public: public, keys: gen}
	return &shop{t, a, a.handler()}
}

// ask sends a request, and returns the answer's status and body.
func (s *shop) ask(method, target, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// want sends a request, and decodes an answer that must have this status.
func want[T any](s *shop, status int, method, target, body string) (v T) {
	s.t.Helper()
	code, text := s.ask(method, target, body)
	if code != status {
		s.t.Fatalf("%s %s %s = %d %s; want %d", method, target, body, code, text, status)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		s.t.Fatalf("%s %s = %s: %v", method, target, text, err)
	}
	return v
}

// What a client reads.
type (
	received struct {
		ID       types.ID[Order]
		Name     string
		Customer string
		Lines    []struct {
			ID       types.ID[Line]
			SKU      string
			Quantity int
		}
	}
	receivedPage struct {
		Orders []struct {
			ID       types.ID[Order]
			Name     string
			Customer string
			Lines    int
		}
		Newer, Older bool
	}
)

// path asks for a name, and returns the path under which an order can be saved.
func (s *shop) path() string {
	s.t.Helper()
	return "/api/orders/" + want[struct{ Name string }](s, http.StatusCreated, "POST", "/api/drafts", "").Name
}

// count is how many orders and lines are stored.
func (s *shop) count() (orders, lines int) {
	s.t.Helper()
	err := s.api.orders.db.QueryRow("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM order_lines)").Scan(&orders, &lines)
	if err != nil {
		s.t.Fatal(err)
	}
	return orders, lines
}

const cups = `{"customer":" Aalto ","lines":[{"sku":"cup","quantity":4},{"sku":"pot","quantity":1}]}`

func TestAnOrderIsFoundByItsNameWithItsLines(t *testing.T) {
	s := newShop(t)
	path := s.path()
	saved := want[received](s, http.StatusCreated, "PUT", path, cups)
	read := want[received](s, http.StatusOK, "GET", path, "")
	if got, want := fmt.Sprint(read), fmt.Sprint(saved); got != want {
		t.Errorf("GET %s = %s; want what PUT returned, %s", path, got, want)
	}
	if read.Customer != "Aalto" || len(read.Lines) != 2 || read.Lines[0].SKU != "cup" || read.Lines[0].Quantity != 4 || read.Lines[1].SKU != "pot" {
		t.Errorf("GET %s = %+v; want what was sent, without the spaces", path, read)
	}
	if "/api/orders/"+read.Name != path || s.api.public.Encode(read.ID.Snowflake()) != read.Name {
		t.Errorf("GET %s has name %s and key %d; want the name that was asked for, and its key", path, read.Name, read.ID)
	}
}

func TestAnOrderIsStoredWithAllItsLinesOrNotAtAll(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	s := newShop(t)
	s.api.orders.db.MustExec("CREATE TRIGGER t BEFORE INSERT ON order_lines WHEN NEW.sku = 'pot' BEGIN SELECT RAISE(ABORT, 'no pots'); END")
	path := s.path()
	if code, body := s.ask("PUT", path, cups); code != http.StatusInternalServerError || strings.Contains(body, "pots") {
		t.Errorf("PUT %s = %d %s; want 500 without the reason, which is for the log", path, code, body)
	}
	if orders, lines := s.count(); orders+lines != 0 {
		t.Errorf("%d orders and %d lines are stored; want none", orders, lines)
	}
	s.api.orders.db.MustExec("DROP TRIGGER t")
	want[received](s, http.StatusCreated, "PUT", path, cups)
}

func TestSavedManyTimesAtOnceIsStoredOnce(t *testing.T) {
	s := newShop(t)
	path := s.path()
	statuses := make([]int, 20)
	var requests sync.WaitGroup
	for i := range statuses {
		requests.Go(func() { statuses[i], _ = s.ask("PUT", path, cups) })
	}
	requests.Wait()
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	if counts[http.StatusCreated] != 1 || counts[http.StatusOK] != len(statuses)-1 {
		t.Errorf("statuses = %v; want 201 once, and 200", statuses)
	}
	if orders, lines := s.count(); orders != 1 || lines != 2 {
		t.Errorf("%d orders and %d lines are stored; want 1 and 2", orders, lines)
	}
}

func TestAStoredOrderIsNeverOverwritten(t *testing.T) {
	s := newShop(t)
	path := s.path()
	want[received](s, http.StatusCreated, "PUT", path, cups)
	for _, other := range []string{
		strings.Replace(cups, "Aalto", "Bjork", 1),
		strings.Replace(cups, "cup", "cap", 1),
		strings.Replace(cups, "4", "5", 1),
		`{"customer":"Aalto","lines":[{"sku":"cup","quantity":4}]}`,
	} {
		if code, body := s.ask("PUT", path, other); code != http.StatusConflict {
			t.Errorf("PUT %s %s = %d %s; want 409", path, other, code, body)
		}
	}
	if got := want[received](s, http.StatusOK, "PUT", path, cups); got.Customer != "Aalto" || len(got.Lines) != 2 {
		t.Errorf("PUT %s = %+v; want the first order", path, got)
	}
}

func TestThePagesHaveEveryOrderOnceNewestFirst(t *testing.T) {
	s := newShop(t)
	var made []types.ID[Order] // oldest first
	add := func() {
		made = append(made, want[received](s, http.StatusCreated, "PUT", s.path(), cups).ID)
	}
	if got := want[receivedPage](s, http.StatusOK, "GET", "/api/orders", ""); got.Orders == nil || len(got.Orders) > 0 || got.Newer || got.Older {
		t.Errorf("GET /api/orders = %+v; want an empty list", got)
	}
	for range 25 {
		add()
	}
	page := want[receivedPage](s, http.StatusOK, "GET", "/api/orders", "")
	add() // it moves no order to another page
	expect := func(from, until int, newer, older bool) {
		t.Helper()
		if len(page.Orders) != until-from || page.Newer != newer || page.Older != older {
			t.Fatalf("page = %+v; want orders %d to %d, newer %t, older %t", page, from, until-1, newer, older)
		}
		for i, o := range page.Orders {
			if o.ID != made[until-1-i] || o.Lines != 2 || o.Name != s.api.public.Encode(o.ID.Snowflake()) {
				t.Errorf("order %d of the page = %+v; want order %d", i, o, until-1-i)
			}
		}
	}
	turn := func(parameter string, i int) {
		page = want[receivedPage](s, http.StatusOK, "GET", fmt.Sprintf("/api/orders?%s=%d", parameter, page.Orders[i].ID), "")
	}
	expect(15, 25, false, true)
	turn("before", 9)
	expect(5, 15, true, true)
	turn("before", 9)
	expect(0, 5, true, false)
	turn("after", 0)
	expect(5, 15, true, true)
	turn("after", 0)
	expect(15, 25, true, true)
	turn("after", 0)
	expect(25, 26, false, true)
}

// strangers are texts that are no key in any form that a client may send.
var strangers = []string{" 5", "5 ", "+5", "-0", "-1", "007", "1_000", "0x10", "1e3", "1.0", "٥", "５", "5\x00", "9223372036854775808", "99999999999999999999", strings.Repeat("9", 1<<10), "\xff", "null", `"5"`}

func TestOnlyThePublicFormNamesAnOrder(t *testing.T) {
	s := newShop(t)
	saved := want[received](s, http.StatusCreated, "PUT", s.path(), cups)
	id := saved.ID.Snowflake()
	last := saved.Name[:len(saved.Name)-1]
	others := append([]string{
		id.String(), id.Base62(), id.Base58(), id.Base32(),
		saved.Name + "0", last, strings.ToUpper(saved.Name), strings.TrimPrefix(saved.Name, "order_"), "line_" + strings.TrimPrefix(saved.Name, "order_"), " " + saved.Name,
	}, strangers...)
	for _, c := range "019AZaz" {
		if changed := last + string(c); changed != saved.Name {
			others = append(others, changed)
		}
	}
	for _, text := range others {
		for _, method := range []string{"GET", "PUT"} {
			code, body := s.ask(method, "/api/orders/"+url.PathEscape(text), cups)
			if code != http.StatusNotFound || body != `{"error":"no such order"}` {
				t.Errorf("%s /api/orders/%q = %d %s; want 404", method, text, code, body)
			}
		}
	}
	// A name that was given, but never saved: no difference can be seen.
	if code, body := s.ask("GET", s.path(), ""); code != http.StatusNotFound || body != `{"error":"no such order"}` {
		t.Errorf("GET of a draft = %d %s; want 404", code, body)
	}
	if orders, _ := s.count(); orders != 1 {
		t.Errorf("%d orders are stored; want 1", orders)
	}
}

func TestOnlyADecimalKeyIsACursor(t *testing.T) {
	s := newShop(t)
	name := strings.TrimPrefix(s.path(), "/api/orders/")
	for _, text := range append([]string{name, "118972074688540673x", "A"}, strangers...) {
		for _, parameter := range []string{"before", "after"} {
			target := "/api/orders?" + url.Values{parameter: {text}}.Encode()
			if code, body := s.ask("GET", target, ""); code != http.StatusBadRequest || !strings.Contains(body, `"error":`) {
				t.Errorf("GET %s = %d %s; want 400", target, code, body)
			}
		}
	}
	if code, body := s.ask("GET", "/api/orders?before=1&after=1", ""); code != http.StatusBadRequest {
		t.Errorf("GET with both parameters = %d %s; want 400", code, body)
	}
}

func TestWhatNoFormSendsIsRefused(t *testing.T) {
	s := newShop(t)
	path := s.path()
	line := `{"sku":"cup","quantity":1}`
	lines := func(n int) string { return strings.TrimSuffix(strings.Repeat(line+",", n), ",") }
	for body, status := range map[string]int{
		"":                 400,
		"null":             422,
		"[]":               400,
		"{":                400,
		cups + cups:        400,
		`{"customer":"A"}`: 422,
		`{"id":"5"}`:       400, // the key is in the path
		`{"customer":" ","lines":[` + line + `]}`:                                  422,
		`{"customer":"` + strings.Repeat("é", 101) + `","lines":[` + line + `]}`:   422,
		`{"customer":"A","lines":[` + lines(101) + `]}`:                            422,
		`{"customer":"A","lines":[{"sku":"","quantity":1}]}`:                       422,
		`{"customer":"A","lines":[{"sku":"cup","quantity":0}]}`:                    422,
		`{"customer":"A","lines":[{"sku":"cup","quantity":10001}]}`:                422,
		`{"customer":"A","lines":[{"sku":"cup","quantity":1.5}]}`:                  400,
		`{"customer":"A","lines":[{"sku":"cup","quantity":99999999999999999999}]}`: 400,
		`{"customer":"A","lines":[{"sku":"cup","quantity":"1"}]}`:                  400,
		`{"customer":"` + strings.Repeat("A", 1<<20) + `","lines":[` + line + `]}`: 400,
	} {
		if code, answer := s.ask("PUT", path, body); code != status || !strings.Contains(answer, `"error":`) {
			t.Errorf("PUT %.80s = %d %s; want %d", body, code, answer, status)
		}
	}
	want[received](s, http.StatusCreated, "PUT", path, `{"customer":"`+strings.Repeat("é", 100)+`","lines":[`+lines(100)+`]}`)
}

func TestKeysAreStringsUnlessNumbersAreAskedFor(t *testing.T) {
	s := newShop(t)
	path := s.path()
	const trap = `"id":"5"` // what looks like a key within a text
	saved := want[received](s, http.StatusCreated, "PUT", path, fmt.Sprintf(`{"customer":%q,"lines":[{"sku":"cup","quantity":1}]}`, trap))
	for target, lines := range map[string]string{
		path:          fmt.Sprintf(`[{"id":"%d","sku":"cup","quantity":1}]`, saved.Lines[0].ID),
		"/api/orders": "1",
	} {
		text := fmt.Sprintf(`{"id":"%d","name":%q,"customer":%q,"lines":%s}`, saved.ID, saved.Name, trap, lines)
		if _, body := s.ask("GET", target, ""); !strings.Contains(body, text) {
			t.Errorf("GET %s = %s; want %s in it", target, body, text)
		}
		for _, id := range []string{saved.ID.String(), saved.Lines[0].ID.String()} {
			text = strings.ReplaceAll(text, `"id":"`+id+`"`, `"id":`+id+`,"id_str":"`+id+`"`)
		}
		if _, body := s.ask("GET", target+"?keys=numbers", ""); !strings.Contains(body, text) {
			t.Errorf("GET %s?keys=numbers = %s; want %s in it", target, body, text)
		}
	}
}

func TestEveryAnswerForbidsOtherHosts(t *testing.T) {
	s := newShop(t)
	for _, target := range []string{"/", "/new", "/orders/order_x", "/page.js", "/api/orders", "/api/orders/x", "/nothing"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.ContainsAny(policy, "*:") {
			t.Errorf("GET %s has the policy %q; want one that allows this host alone", target, policy)
		}
		if isPage := !strings.ContainsAny(target[1:], "./") || strings.HasPrefix(target, "/orders/"); isPage && target != "/nothing" &&
			(w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "<!doctype html>")) {
			t.Errorf("GET %s = %d %.40s; want the page", target, w.Code, w.Body)
		}
	}
	err := fs.WalkDir(embedded, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(embedded, path)
		text = bytes.ReplaceAll(text, []byte(`xmlns="http://www.w3.org/2000/svg"`), nil) // a name, and nothing to load
		if regexp.MustCompile(`https?:|url\(`).Match(text) {
			t.Errorf("%s names another host", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPageOfAnotherSiteCannotSave(t *testing.T) {
	s := newShop(t)
	path := s.path()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPut, path, strings.NewReader(cups))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	s.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("PUT from another site = %d; want 403", w.Code)
	}
	if body, _ := io.ReadAll(w.Body); bytes.Contains(body, []byte("Aalto")) {
		t.Errorf("PUT from another site = %s; want no order", body)
	}
}

// A name may be in Arabic, and a time has no zone unless it names one.
func TestThePageTakesTextOfEitherDirectionAndNamesTheZone(t *testing.T) {
	text, err := fs.ReadFile(embedded, "page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	inputs := regexp.MustCompile(`<input [^>]*>`).FindAll(text, -1)
	for _, input := range inputs {
		if !bytes.Contains(input, []byte(` type="`)) && !bytes.Contains(input, []byte(` dir="auto"`)) {
			t.Errorf("%s of the page takes text from left to right only; want dir=auto", input)
		}
	}
	times := regexp.MustCompile(`<time></time>.{4}`).FindAll(text, -1)
	for _, at := range times {
		if !bytes.HasSuffix(at, []byte(" UTC")) {
			t.Errorf("%s of the page; want UTC beside it", at)
		}
	}
	if len(inputs) < 3 || len(times) < 2 {
		t.Errorf("%d inputs and %d times found; want those of the form and of two sections", len(inputs), len(times))
	}
}
