package browser

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A program is examples/web, with a database of its own.
type program struct {
	t       *testing.T
	binary  string
	db      string
	url     string
	process *exec.Cmd
	log     bytes.Buffer
}

// build compiles the program once for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "web")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "web")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/snowkey/snowkey/examples/web").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, err
})

// chromium starts the browser once for all tests. It has a profile of its own, which goes with it.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	atEnd = append(atEnd, func() { _ = chromedp.Cancel(ctx) })
	return ctx, chromedp.Do(ctx)
})

// atEnd ends what the tests have started. They run one after the other.
var atEnd []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range atEnd {
		end()
	}
	os.Exit(code)
}

// serve starts the program with an empty database.
func serve(t *testing.T) *program {
	t.Helper()
	binary, err := build()
	must(t, err)
	p := &program{t: t, binary: binary, db: filepath.Join(t.TempDir(), "web.db"), url: "http://127.0.0.1:0"}
	p.start()
	t.Cleanup(func() {
		if p.process != nil {
			p.stop()
		}
	})
	return p
}

// start starts the program at the address that it had.
func (p *program) start() {
	p.t.Helper()
	p.process = exec.Command(p.binary, "-addr", strings.TrimPrefix(p.url, "http://"), "-db", p.db)
	p.process.Stderr = &p.log
	out, err := p.process.StdoutPipe()
	must(p.t, err)
	must(p.t, p.process.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the program wrote %q, %v, and %s; want its address", line, err, &p.log)
	}
	p.url = strings.TrimSpace(line)
}

// stop ends the program as a service manager does.
func (p *program) stop() {
	p.t.Helper()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Error(err)
	}
	if err := p.process.Wait(); err != nil || p.log.Len() > 0 {
		p.t.Errorf("the program ended with %v and %q; want exit code 0 and no word", err, &p.log)
	}
	p.process = nil
}

// A tab is a browser that looks at the program.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string // of the program

	mu       sync.Mutex
	problems []string // what the console says, and requests to others
	requests []string // method and path of those to the API
}

// open opens a tab. When the test ends, the browser must have had nothing to complain about.
func open(t *testing.T, p *program) *tab {
	t.Helper()
	browser, err := chromium()
	if errors.Is(err, exec.ErrNotFound) {
		servertest.Missing(t, fmt.Sprintf("chromium: %v; install Debian's package chromium", err))
	}
	must(t, err)
	ctx, cancel := context.WithTimeout(browser, 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: p.url}
	must(t, chromedp.Listen(ctx, b.listen))
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("closing the tab: %v", err)
		}
		for _, problem := range b.problems {
			t.Errorf("the browser says: %s", problem)
		}
	})
	b.size(1000, 900)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		// A status of 4xx and a server that is away are the browser's to report, and the
		// page's to explain.
		if e.Entry.Source != log.EntrySourceNetwork {
			b.problems = append(b.problems, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		address, err := url.Parse(e.Request.URL)
		if err != nil || "http://"+address.Host != b.url {
			b.problems = append(b.problems, "request to "+e.Request.URL)
		} else if strings.HasPrefix(address.Path, "/api/") {
			b.requests = append(b.requests, e.Request.Method+" "+address.RequestURI())
		}
	}
}

// do runs actions, and ends the test if one fails.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page shows:\n%s", err, b.text("main"))
	}
}

func (b *tab) size(width, height int64) { b.do(chromedp.EmulateViewport(width, height)) }

// visit opens a path of the program, and waits until the page shows a heading.
func (b *tab) visit(path, heading string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
	b.heading(heading)
}

// heading waits until the section that is shown has this heading.
func (b *tab) heading(want string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector('section:not([hidden]) h1')?.textContent === %q", want))
}

// message waits until the page says something that begins like this.
func (b *tab) message(want string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector('#message p').textContent.startsWith(%q)", want))
}

// until waits until an expression in JavaScript is true. The context in which it is evaluated ends
// with its page, which may still be the one before a navigation.
func (b *tab) until(expression string) {
	b.t.Helper()
	var err error
	for range 10 {
		err = chromedp.Do(b.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(3*time.Minute)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Cannot find context") {
			break
		}
	}
	b.t.Fatalf("%v; the page shows:\n%s", err, b.text("main"))
}

// evaluate returns the value of an expression in JavaScript.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text returns what somebody reads in an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// texts returns the text of each element, "sent …" below a key included.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return evaluate[[]string](b, fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.textContent)", selector))
}

// visible is the part of a selector before the elements of the section that is shown.
const visible = "section:not([hidden]) "

// click clicks the button or link of that text. The page may replace it between the search and the
// click, as it does with the buttons of a message that comes twice. Then nothing was clicked.
func (b *tab) click(text string) {
	b.t.Helper()
	at := chromedp.Search(fmt.Sprintf("//main/*[not(@hidden)]//*[self::a or self::button][normalize-space()=%q]", text))
	for try := 1; ; try++ {
		err := chromedp.Do(b.ctx, chromedp.Click(at))
		if err == nil {
			return
		}
		if try == 10 || !strings.Contains(err.Error(), "Could not find node") {
			b.t.Fatalf("click %q: %v; the page shows:\n%s", text, err, b.text("main"))
		}
	}
}

// press presses keys, one after the other.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
