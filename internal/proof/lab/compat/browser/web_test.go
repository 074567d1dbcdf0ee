package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// An order is what a test wants to know of one that is stored.
type order struct {
	ID       types.Snowflake `json:"id"`
	Name     string          `json:"name"`
	Customer string          `json:"customer"`
}

// call sends a request to the API, and decodes the answer into v.
func (p *program) call(method, path, body string, v any) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	must(p.t, err)
	answer, err := http.DefaultClient.Do(r)
	must(p.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		p.t.Fatalf("%s %s = %s %s, %v; want an answer", method, path, answer.Status, text, err)
	}
	must(p.t, json.Unmarshal(text, v))
}

// add stores an order without the browser.
func (p *program) add(customer string, skus ...string) (o order) {
	p.t.Helper()
	var lines []string
	for _, sku := range skus {
		lines = append(lines, fmt.Sprintf(`{"sku":%q,"quantity":1}`, sku))
	}
	p.call("POST", "/api/drafts", "", &o)
	p.call("PUT", "/api/orders/"+o.Name, fmt.Sprintf(`{"customer":%q,"lines":[%s]}`, customer, strings.Join(lines, ",")), &o)
	return o
}

// stored returns the newest orders, newest first.
func (p *program) stored() []order {
	p.t.Helper()
	var page struct{ Orders []order }
	p.call("GET", "/api/orders", "", &page)
	return page.Orders
}

// made is when the key was made, as the page writes it.
func made(id types.Snowflake) string {
	return core.Default().Parts(id).Time.UTC().Format("2006-01-02 15:04:05.000")
}

// enter fills the form, whose last line is empty.
func (b *tab) enter(customer, sku string) {
	b.t.Helper()
	b.do(
		chromedp.SendKeys(chromedp.CSS("[name=customer]"), customer),
		chromedp.SendKeys(chromedp.CSS("form li:last-child [name=sku]"), sku),
	)
}

// saveTwice presses Save as an impatient hand does. The second half of a double click is all that
// chromedp calls one.
func (b *tab) saveTwice() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(".save")), chromedp.DoubleClick(chromedp.CSS(".save")))
}

func TestAnOrderIsEnteredOpenedAndListed(t *testing.T) {
	p := serve(t)
	b := open(t, p)
	b.visit("/", "No orders yet")
	b.click("New order")
	b.heading("New order")
	b.enter("Aalto", "cup")
	b.click("Add a line")
	b.enter("", "pot")
	b.click("Add a line")
	b.enter("", "lid")
	b.do(chromedp.Click(chromedp.CSS("form li:nth-child(2) .remove")))
	b.do(chromedp.SendKeys(chromedp.CSS("form li:nth-child(2) [name=quantity]"), "2")) // before the 1
	b.click("Save")
	b.message("Saved.")
	b.click("Open the order")
	b.heading("Order of Aalto")

	all := p.stored()
	if len(all) != 1 {
		t.Fatalf("%d orders are stored; want 1", len(all))
	}
	o := all[0]
	if got, want := evaluate[string](b, "location.pathname"), "/orders/"+o.Name; got != want {
		t.Errorf("the address is %s; want %s", got, want)
	}
	for selector, want := range map[string]string{
		"dd.name": o.Name,
		"dd.key":  o.ID.String(),
		"time":    made(o.ID),
	} {
		if got := b.text(visible + selector); got != want {
			t.Errorf("the order shows %s %q; want %q", selector, got, want)
		}
	}
	at := evaluate[string](b, fmt.Sprintf("document.querySelector(%q).dateTime", visible+"time")) // for programs
	if got, err := time.Parse(time.RFC3339Nano, at); err != nil || !got.Equal(core.Default().Parts(o.ID).Time) || time.Since(got) > time.Hour {
		t.Errorf("the order shows the time %s; want %s, of the key", at, core.Default().Parts(o.ID).Time)
	}
	got := append(b.texts(visible+"td.sku"), b.texts(visible+"td.quantity")...)
	if want := []string{"cup", "lid", "1", "21"}; !slices.Equal(got, want) {
		t.Errorf("the order shows lines %q; want %q", got, want)
	}

	b.click("All orders")
	b.heading("Orders")
	if got, want := b.text("ol"), "Aalto\n2 lines\n"+made(o.ID)+" UTC\n"+o.ID.String(); got != want {
		t.Errorf("the list shows %q; want %q", got, want)
	}
	b.click("New order") // the form does not show the old one
	b.heading("New order")
	if got := evaluate[string](b, "document.querySelector('[name=customer]').value + document.querySelectorAll('form li').length"); got != "1" {
		t.Errorf("the new form has customer and lines %q; want no customer and 1 line", got)
	}
	b.visit("/orders/"+o.Name, "Order of Aalto") // a link that somebody sent
}

func TestPagesOfTheListGoBothWays(t *testing.T) {
	p := serve(t)
	var want []string // newest first
	for i := range 25 {
		want = slices.Insert(want, 0, p.add("Customer "+strconv.Itoa(i), "cup").ID.String())
	}
	b := open(t, p)
	b.visit("/", "Orders")
	expect := func(from, until int, links ...string) {
		t.Helper()
		b.until(fmt.Sprintf("document.querySelector('ol .key')?.textContent === %q", want[from]))
		if got := b.texts(visible + ".key"); !slices.Equal(got, want[from:until]) {
			t.Errorf("the list shows keys %q; want %q", got, want[from:until])
		}
		if got := b.texts("nav a:not([hidden])"); !slices.Equal(got, links) {
			t.Errorf("the list has links %q; want %q", got, links)
		}
	}
	expect(0, 10, "Older →")
	b.click("Older →")
	expect(10, 20, "← Newer", "Older →")
	b.click("Older →")
	expect(20, 25, "← Newer")
	b.click("← Newer")
	expect(10, 20, "← Newer", "Older →")
	b.do(chromedp.NavigateBack()) // as the browser's button does
	expect(20, 25, "← Newer")
	b.do(chromedp.Reload())
	expect(20, 25, "← Newer")
	b.visit("/?after="+want[0], "Orders") // beyond the end: the newest
	expect(0, 10, "Older →")
}

func TestAMistypedNameIsExplained(t *testing.T) {
	p := serve(t)
	o := p.add("Aalto", "cup")
	b := open(t, p)
	end := "0"
	if strings.HasSuffix(o.Name, end) {
		end = "1"
	}
	mistyped := o.Name[:len(o.Name)-1] + end
	for _, name := range []string{mistyped, o.ID.String(), "%E2%82%AC", "order_"} {
		b.visit("/orders/"+name, "No such order")
		if got := b.text(visible + ".name"); got != name {
			t.Errorf("the page says that %q is unknown; want %q", got, name)
		}
	}
	b.visit("/?before="+o.Name, "No such order") // a name is no key
	b.click("All orders")
	b.heading("Orders")
}

// shown is a key as the page shows it.
type shown struct {
	Digits, Sent string
	Marked       []int
}

func (b *tab) keys() []shown {
	b.t.Helper()
	return evaluate[[]shown](b, `[...document.querySelectorAll("`+visible+`.key")].map((key) => ({
		Digits: key.querySelector(".digits").textContent,
		Sent: key.querySelector("small")?.textContent ?? "",
		Marked: [...key.querySelector(".digits").children].flatMap((digit, i) => digit.matches("mark") ? [i] : []),
	}))`)
}

func TestTheSwitchShowsWhichDigitsNumbersLose(t *testing.T) {
	p := serve(t)
	for range 12 {
		p.add("Aalto", "cup", "pot", "lid")
	}
	b := open(t, p)
	b.visit("/", "Orders")
	want := b.texts(visible + ".key")
	check := func(numbers bool) (lost int) {
		t.Helper()
		for i, key := range b.keys() {
			digits, sent, marked := want[i], "", []int{}
			if numbers {
				id, err := strconv.ParseInt(want[i], 10, 64)
				must(t, err)
				digits = strconv.FormatFloat(float64(id), 'f', -1, 64) // as JavaScript does
			}
			if digits != want[i] {
				sent = "sent " + want[i]
				lost++
			}
			for d := range digits {
				if digits[d] != want[i][d] {
					marked = append(marked, d)
				}
			}
			if key.Digits != digits || key.Sent != sent || !slices.Equal(key.Marked, marked) {
				t.Errorf("key %d is shown as %+v; want digits %s, %q, marked %d", i, key, digits, sent, marked)
			}
		}
		return lost
	}
	if lost := check(false); lost != 0 {
		t.Errorf("as strings %d keys lost digits; want 0", lost)
	}
	b.do(chromedp.Click(chromedp.CSS("#numbers")))
	b.until("document.querySelector('#list mark')")
	if lost := check(true); lost == 0 || !strings.HasPrefix(b.text(visible+".verdict"), fmt.Sprintf("As numbers, %d of 10 keys lost digits", lost)) {
		t.Errorf("as numbers %d keys lost digits, and the page says %q; want some, and it to say so", lost, b.text(visible+".verdict"))
	}

	// The lines of an order have keys that follow each other, and become one number.
	b.do(chromedp.Click(chromedp.CSS("ol a")))
	b.heading("Order of Aalto")
	numbers := map[string]bool{}
	for _, key := range b.keys() {
		numbers[key.Digits] = true
	}
	if got := b.text(visible + ".verdict"); len(numbers) > 2 || !strings.Contains(got, fmt.Sprintf("4 keys have become %d number", len(numbers))) {
		t.Errorf("the page shows keys %v and says %q; want 1 or 2 numbers, and it to say so", numbers, got)
	}
	b.do(chromedp.Click(chromedp.CSS("#numbers")))
	b.until("!document.querySelector('#order mark')")
	want = b.texts(visible + ".key")
	if lost := check(false); lost != 0 || len(want) != 4 || !evaluate[bool](b, "document.querySelector('#order .verdict').hidden") {
		t.Errorf("as strings again, %d of %d keys lost digits; want 0 of 4, and no word of it", lost, len(want))
	}
}

func TestSavePressedTwiceStoresOnce(t *testing.T) {
	p := serve(t)
	b := open(t, p)
	b.visit("/new", "New order")
	b.enter("Aalto", "cup")
	b.saveTwice()
	b.message("Saved twice, stored once")
	name := p.stored()[0].Name
	if want := []string{"POST /api/drafts", "PUT /api/orders/" + name, "PUT /api/orders/" + name}; !slices.Equal(b.requests, want) {
		t.Errorf("the browser sent %q; want %q", b.requests, want)
	}
	if got := p.stored(); len(got) != 1 {
		t.Errorf("%d orders are stored; want 1", len(got))
	}

	// What was changed since is another order, if that is what somebody wants.
	b.enter(" & Bjork", "")
	b.click("Save")
	b.message("This order is stored already")
	if got := p.stored(); len(got) != 1 || got[0].Customer != "Aalto" {
		t.Errorf("%+v is stored; want the order of Aalto", got)
	}
	b.click("Save as another order")
	b.message("Saved.")
	if got := p.stored(); len(got) != 2 || got[0].Customer != "Aalto & Bjork" {
		t.Errorf("%+v is stored; want the other order too", got)
	}
}

func TestALostConnectionLosesNothing(t *testing.T) {
	p := serve(t)
	b := open(t, p)
	b.visit("/", "No orders yet")
	p.stop()
	b.click("New order") // needs no server
	b.heading("New order")
	b.enter("Aalto", "cup")
	b.saveTwice()
	b.message("Connection lost: the server does not answer. What you have entered is still here.")
	if got := evaluate[string](b, "[...document.querySelectorAll('form input')].map((i) => i.value).join()"); got != "Aalto,cup,1" {
		t.Errorf("the form has %q; want what was entered", got)
	}
	evaluate[chromedp.Void](b, "document.querySelector('#message button').value = 'old'")
	b.click("Try again")
	b.until("document.querySelector('#message button').value === ''")
	if !evaluate[bool](b, "document.querySelector('#message button') === document.activeElement") {
		t.Error("the focus is lost with the old button; want it on the new one")
	}
	b.message("Connection lost")
	p.start()
	b.click("Try again")
	b.message("Saved.")
	if got := p.stored(); len(got) != 1 || got[0].Customer != "Aalto" {
		t.Errorf("%+v is stored; want the order once", got)
	}

	p.stop()
	b.click("Open the order")
	b.message("Connection lost")
	p.start()
	b.click("Try again")
	b.heading("Order of Aalto")
	if got := b.text("#message"); got != "" {
		t.Errorf("after the retry the page says %q; want nothing", got)
	}
}

func TestTheKeyboardIsEnough(t *testing.T) {
	p := serve(t)
	b := open(t, p)
	b.visit("/", "No orders yet")
	const tab, enter = "\t", "\r"
	// focus checks which element has the focus, and that it can be seen.
	focus := func(want string) {
		t.Helper()
		got := evaluate[string](b, `(() => {
			const e = document.activeElement, style = getComputedStyle(e);
			const seen = e.matches("h1") || style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2;
			return (e.ariaLabel ?? e.labels?.[0]?.innerText ?? e.textContent).trim() + (seen ? "" : ", which cannot be seen");
		})()`)
		if got != want {
			t.Fatalf("the focus is on %q; want %q", got, want)
		}
	}
	for _, want := range []string{"Orders", "Keys as numbers", "New order"} {
		b.press(tab)
		focus(want)
	}
	b.press(enter)
	b.heading("New order")
	focus("New order") // the heading
	b.press(tab)
	focus("Customer")
	b.press("A", "l", "m", "a", tab)
	focus("SKU")
	b.press("c", "u", "p", tab)
	focus("Quantity")
	b.press(tab)
	focus("Add a line")
	b.press(enter)
	focus("SKU")
	b.press("p", "o", "t", tab)
	focus("Quantity")
	b.press("2", enter) // Enter saves
	b.message("Saved.")
	focus("Quantity")
	for _, want := range []string{"Remove this line", "Add a line", "Save", "Open the order"} {
		b.press(tab)
		focus(want)
	}
	b.press(enter)
	b.heading("Order of Alma")
	focus("Order of Alma")
	b.do(chromedp.KeyEvent(tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
	focus("Keys as numbers")
	b.press(" ")
	b.until("document.querySelector('#order mark')")
	focus("Keys as numbers")
	b.do(chromedp.NavigateBack())
	b.heading("New order")
	focus("New order")

	// What the page says is announced.
	if got := evaluate[string](b, "document.querySelector('#message').role"); got != "status" {
		t.Errorf("the message has the role %q; want status", got)
	}
}

func TestAPhoneNeedsNoSidewaysScrolling(t *testing.T) {
	p := serve(t)
	b := open(t, p)
	long := strings.Repeat("W", 100)
	for _, width := range []int64{320, 360, 390} {
		b.size(width, 740)
		fits := func() {
			t.Helper()
			got := evaluate[string](b, `[document.documentElement, ...document.querySelectorAll("body *")]
				.filter((e) => e.getBoundingClientRect().right > innerWidth || e === document.documentElement && e.scrollWidth > innerWidth)
				.map((e) => e.outerHTML.slice(0, 80)).join("\n")`)
			if got != "" {
				t.Errorf("%d pixels are too narrow for\n%s", width, got)
			}
			if got := evaluate[int64](b, "innerWidth"); got != width {
				t.Fatalf("the window has %d pixels; want %d", got, width)
			}
		}
		if width == 320 {
			b.visit("/", "No orders yet")
			fits()
			for i := range 21 {
				p.add(long, long, strconv.Itoa(i))
			}
		}
		b.visit("/", "Orders")
		fits()
		b.do(chromedp.Click(chromedp.CSS("#numbers")))
		b.until("document.querySelector('#list mark')")
		fits()
		b.do(chromedp.Click(chromedp.CSS("ol a")))
		b.heading("Order of " + long)
		fits()
		b.visit("/orders/"+long, "No such order")
		fits()
		b.visit("/new", "New order")
		b.click("Add a line")
		evaluate[chromedp.Void](b, fmt.Sprintf("document.querySelectorAll('form input:not([type])').forEach((i) => { i.value = %q; })", long))
		fits()
		b.click("Save")
		b.message("Saved.")
		fits()
		if got := evaluate[float64](b, `Math.min(...[...document.querySelectorAll("main button, main .button")].filter((e) => e.checkVisibility({visibilityProperty: true})).map((e) => e.offsetHeight))`); got < 40 {
			t.Errorf("a button is %.0f pixels high; want 40, for a finger", got)
		}
	}
}
