package browser

import (
	"bytes"
	"cmp"
	"database/sql"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

var picture = flag.Bool("picture", false, "take the picture of the page anew")

// The picture shows the list on a desk and an order on a phone, both with keys as numbers.
func TestThePictureOfThePageIsSmall(t *testing.T) {
	const file = "../../../../../docs/web.png"
	if *picture {
		take(t, file)
	}
	data, err := os.ReadFile(file)
	must(t, err)
	if _, err := png.Decode(bytes.NewReader(data)); err != nil || len(data) > 150<<10 {
		t.Errorf("%s has %d bytes, %v; want a PNG of at most 150 KB", file, len(data), err)
	}
}

func take(t *testing.T, file string) {
	p := serve(t)
	db, err := sql.Open("sqlite3", p.db)
	must(t, err)
	defer db.Close()
	// Orders of several days, the last one with lines whose keys follow each other.
	at := time.Date(2026, 11, 2, 9, 14, 3, 0, time.UTC)
	key := func(sequence int64) types.Snowflake {
		id, err := core.Default().Compose(core.Parts{Time: at, Worker: 7, Sequence: sequence})
		must(t, err)
		return id
	}
	for i, customer := range []string{"Blauer See", "Bólido Comidas", "Eastern Connection", "Galería del gastrónomo", "Folk och fä"} {
		at = at.Add(time.Duration(1+i*i%5)*2*time.Hour + time.Duration(i)*7*time.Minute + 3217*time.Millisecond)
		if _, err := db.Exec("INSERT INTO orders VALUES (?, ?)", key(1), customer); err != nil {
			t.Fatal(err)
		}
		for n, sku := range []string{"coffee pot", "lid", "cup"}[(4-i)%3:] {
			if _, err := db.Exec("INSERT INTO order_lines VALUES (?, ?, ?, ?)", key(int64(n+2)), key(1), sku, 1+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := open(t, p)
	desk := b.picture(700, 630, "/", "Orders")
	phone := b.picture(360, 630, "/orders/"+p.stored()[0].Name, "Order of Folk och fä")

	const gap = 24
	size := desk.Bounds().Size().Add(image.Pt(gap+phone.Bounds().Dx(), 0))
	whole := image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(whole, whole.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(whole, desk.Bounds(), desk, image.Point{}, draw.Src)
	draw.Draw(whole, phone.Bounds().Add(image.Pt(size.X-phone.Bounds().Dx(), 0)), phone, image.Point{}, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	must(t, encoder.Encode(&out, fewColors(whole)))
	must(t, os.WriteFile(file, out.Bytes(), 0o600))
}

// picture opens a path with keys as numbers, and takes a picture of the window.
func (b *tab) picture(width, height int64, path, heading string) image.Image {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height, func(m *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
		m.DeviceScaleFactor = 1.5
	}))
	b.visit(path, heading)
	b.do(chromedp.Click(chromedp.CSS("#numbers")))
	b.until("document.querySelector('section:not([hidden]) mark')")
	b.do(chromedp.Blur(chromedp.CSS("#numbers")))
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(b.t, err)
	picture, err := png.Decode(bytes.NewReader(data))
	must(b.t, err)
	return picture
}

// fewColors returns the image in its 256 most frequent colors, which makes the file a third as large.
func fewColors(m *image.RGBA) image.Image {
	count := map[color.Color]int{}
	for i := 0; i < len(m.Pix); i += 4 {
		count[color.RGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], 255}]++
	}
	palette := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	few := image.NewPaletted(m.Bounds(), palette[:min(256, len(palette))])
	draw.Draw(few, few.Bounds(), m, image.Point{}, draw.Src)
	return few
}
