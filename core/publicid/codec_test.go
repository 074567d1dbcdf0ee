package publicid_test

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

const (
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	maxInt64 = types.Snowflake(math.MaxInt64)
	orderID  = types.Snowflake(250134256414617600) // of the default layout
)

var randomTexts = flag.Int("publicid.texts", 0, "random texts of which none may decode; 0 for 200,000, or fewer with the race detector")

func newCodec(t testing.TB, prefix string, keys ...[]byte) *publicid.Codec {
	t.Helper()
	c, err := publicid.New(publicid.Config{Prefix: prefix, Keys: keys})
	if err != nil {
		t.Fatalf("New(%q, %d keys) = %v; want nil", prefix, len(keys), err)
	}
	return c
}

// testKey returns the nth of many keys, of 32 bytes for an even n and of 16 for an odd one.
func testKey(n uint64) []byte {
	key := make([]byte, 32)
	src := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = src.Read(key) // never fails
	return key[:32-16*(n%2)]
}

// keyName returns what names a key in the texts that it writes.
func keyName(key []byte) string {
	c, err := publicid.New(publicid.Config{Prefix: "x", Keys: [][]byte{key}})
	if err != nil {
		panic(err)
	}
	return c.Encode(1)[len("x_"):][:1]
}

// namesakes returns two keys that have one name.
func namesakes() (a, b []byte) {
	seen := map[string][]byte{}
	for n := uint64(0); ; n++ {
		b := testKey(n)
		if a := seen[keyName(b)]; a != nil {
			return a, b
		}
		seen[keyName(b)] = b
	}
}

// someIDs returns n IDs of all lengths and the ends of the range.
func someIDs(n int) []types.Snowflake {
	r := rand.New(rand.NewPCG(27, 1))
	ids := []types.Snowflake{0, 1, 1 << 53, 1<<53 + 1, orderID, orderID + 1, maxInt64 - 1, maxInt64}
	for len(ids) < n {
		ids = append(ids, types.Snowflake(r.Uint64()>>(1+r.IntN(63))))
	}
	return ids[:n]
}

// refuses fails the test unless c refuses text with a short error.
func refuses(t *testing.T, c *publicid.Codec, text, why string) {
	t.Helper()
	id, err := c.Decode(text)
	if id != 0 || !errors.Is(err, publicid.ErrInvalid) {
		t.Fatalf("Decode(%.80q) = %d, %v; want 0, ErrInvalid: %s", text, id, err, why)
	}
	if !strings.HasPrefix(err.Error(), "publicid: ") || len(err.Error()) > 512 {
		t.Fatalf("Decode(%.80q) = %v; want at most 512 bytes that begin with the package", text, err)
	}
}

func TestEveryIDComesBack(t *testing.T) {
	for n, prefix := range []string{"order", "o", "order_item", "order_", "_", ".", "Order", "0", strings.Repeat("p", 40), "a-b.c~d_"} {
		c := newCodec(t, prefix, testKey(uint64(n)))
		ids, texts := map[types.Snowflake]bool{}, map[string]bool{}
		for _, id := range someIDs(2000) {
			text := c.Encode(id)
			code, ok := strings.CutPrefix(text, prefix+"_")
			if !ok || len(code) != 23 || strings.Trim(code, alphabet) != "" {
				t.Fatalf("Encode(%d) = %q; want %s_ and 23 characters of %s", id, text, prefix, alphabet)
			}
			if got, err := c.Decode(text); got != id || err != nil {
				t.Fatalf("Decode(%q) = %d, %v; want %d, nil", text, got, err, id)
			}
			if again := c.Encode(id); again != text {
				t.Fatalf("Encode(%d) = %q and %q; want one text", id, text, again)
			}
			ids[id], texts[text] = true, true
		}
		if len(texts) != len(ids) {
			t.Errorf("%d IDs have %d texts; want one for each", len(ids), len(texts))
		}
	}
}

func TestATextIsNeverEscapedInAURL(t *testing.T) {
	text := newCodec(t, "aA0-._~_", testKey(1)).Encode(orderID)
	u, err := url.Parse("https://shop.example/orders/" + text + "/lines?of=" + text + "#" + text)
	if err != nil {
		t.Fatal(err)
	}
	if url.PathEscape(text) != text || url.QueryEscape(text) != text || u.Path != "/orders/"+text+"/lines" || u.Query().Get("of") != text || u.Fragment != text {
		t.Errorf("%s is %s in a path, %s in a query and %s as a URL; want it as it is", text, url.PathEscape(text), url.QueryEscape(text), u)
	}
}

func TestAChangedCharacterIsRefused(t *testing.T) {
	c := newCodec(t, "order", testKey(1), testKey(2))
	for n, id := range someIDs(100) {
		text := []byte(c.Encode(id))
		for at, was := range text {
			for b := range 256 {
				// Every byte once, and then those that somebody may have typed.
				if byte(b) == was || n > 0 && strings.IndexByte(alphabet, byte(b)) < 0 {
					continue
				}
				text[at] = byte(b)
				refuses(t, c, string(text), fmt.Sprintf("byte %d of the text of %d was %q", at, id, was))
			}
			text[at] = was
		}
	}
}

func TestSwappedCharactersAreRefused(t *testing.T) {
	c := newCodec(t, "order", testKey(1))
	for _, id := range someIDs(200) {
		text := []byte(c.Encode(id))
		for i := range text {
			for j := range i {
				if text[i] == text[j] {
					continue
				}
				text[i], text[j] = text[j], text[i]
				refuses(t, c, string(text), fmt.Sprintf("bytes %d and %d of the text of %d are swapped", j, i, id))
				text[i], text[j] = text[j], text[i]
			}
		}
	}
}

func TestALostOrAddedCharacterIsRefused(t *testing.T) {
	c := newCodec(t, "order", testKey(1))
	for _, id := range someIDs(50) {
		text := c.Encode(id)
		for at := range len(text) {
			refuses(t, c, text[:at], "its end is cut off")
			refuses(t, c, text[at+1:], "its beginning is cut off")
			refuses(t, c, text[:at]+text[at+1:], "a character is missing")
			refuses(t, c, text[:at+1]+text[at:], "a character is doubled")
			for _, added := range []string{"0", "_", "-", " ", "\n", "\x00"} {
				refuses(t, c, text[:at]+added+text[at:], "a character is added before another")
				refuses(t, c, text[:at+1]+added+text[at+1:], "a character is added behind another")
			}
		}
		for _, other := range []string{strings.ToUpper(text), strings.ToLower(text), strings.Replace(text, "_", "-", 1), text + text} {
			refuses(t, c, other, "it is another text")
		}
	}
}

// Each of these texts reaches AES, but for one in sixty that is of no block.
func TestRandomTextsAreRefused(t *testing.T) {
	key := testKey(1)
	c := newCodec(t, "order", key)
	texts := *randomTexts
	switch {
	case texts == 0 && raceEnabled:
		texts = 20_000
	case texts == 0:
		texts = 200_000
	}
	var reached, done atomic.Int64
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(27, uint64(worker)))
			text := []byte("order_" + keyName(key) + strings.Repeat("0", 22))
			for range texts / workers {
				text[7] = '0' + byte(r.IntN(8)) // 2^128 is 7.8 times 62^21
				for i := 8; i < len(text); i++ {
					text[i] = alphabet[r.IntN(62)]
				}
				id, err := c.Decode(string(text))
				if id != 0 || !errors.Is(err, publicid.ErrInvalid) {
					t.Errorf("Decode(%q) = %d, %v; want 0, ErrInvalid", text, id, err)
					return
				}
				if strings.Contains(err.Error(), "another key") {
					reached.Add(1)
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	t.Logf("refused %d random texts, %d of them after decryption", done.Load(), reached.Load())
	if reached.Load() < done.Load()*9/10 {
		t.Errorf("%d of %d texts were decrypted; want most of them, or this test shows nothing", reached.Load(), done.Load())
	}
}

// block returns the block of a text.
func block(text string) [16]byte {
	const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // of math/big
	digits := strings.Map(func(r rune) rune { return rune(bigDigits[strings.IndexRune(alphabet, r)]) }, text[len(text)-22:])
	n, ok := new(big.Int).SetString(digits, 62)
	if !ok {
		panic(text)
	}
	var b [16]byte
	n.FillBytes(b[:])
	return b
}

// distance returns how many bits differ.
func distance(a, b [16]byte) int {
	return bits.OnesCount64(binary.BigEndian.Uint64(a[:8])^binary.BigEndian.Uint64(b[:8])) +
		bits.OnesCount64(binary.BigEndian.Uint64(a[8:])^binary.BigEndian.Uint64(b[8:]))
}

// Whichever bit of the ID changes, half of the block and nearly every character do, as if the text
// were another at random: texts of neighbors have nothing in common.
func TestEachBitOfTheIDChangesHalfOfTheBlock(t *testing.T) {
	c := newCodec(t, "order", testKey(1))
	const ids = 400
	var flips [128]int
	for bit := range 63 {
		sum, same := 0, 0
		for _, id := range someIDs(ids) {
			a, b := c.Encode(id), c.Encode(id^1<<bit)
			x, y := block(a), block(b)
			sum += distance(x, y)
			for i := range flips {
				flips[i] += int((x[i/8] ^ y[i/8]) >> (7 - i%8) & 1)
			}
			for i := 8; i < len(a); i++ { // the first digit is below 8
				if a[i] == b[i] {
					same++
				}
			}
		}
		// The standard deviation of the mean is 0.28 bits; of the characters that stay, 11.6.
		if mean := float64(sum) / ids; mean < 62 || mean > 66 {
			t.Errorf("bit %d of the ID changes %.2f bits of the block on average; want 64", bit, mean)
		}
		if want := ids * 21 / 62; same < want-75 || same > want+75 {
			t.Errorf("after a change of bit %d of the ID %d characters are as they were; want about %d, as at random", bit, same, want)
		}
	}
	for i, n := range flips {
		if share := float64(n) / (63 * ids); share < 0.47 || share > 0.53 { // 9 standard deviations
			t.Errorf("bit %d of the block changes in %.3f of all cases; want 0.5", i, share)
		}
	}
}

// Whichever character changes, half of what the block decrypts to does.
func TestEachCharacterChangesHalfOfWhatIsDecrypted(t *testing.T) {
	key := testKey(1)
	c, aes := newCodec(t, "order", key), newAES(t, key)
	decrypt := func(text string) (b [16]byte) {
		b = block(text)
		aes.Decrypt(b[:], b[:])
		return b
	}
	for at := range 22 {
		sum, tag, n := 0, 0, 0
		for _, id := range someIDs(500) {
			text := []byte(c.Encode(id))
			was := decrypt(string(text))
			if got := types.Snowflake(binary.BigEndian.Uint64(was[:8])); got != id {
				t.Fatalf("the block of %q decrypts to %d; want %d", text, got, id)
			}
			digits := text[len(text)-22:]
			if digits[0] == '7' {
				continue // with another digit behind it, it may be of no block
			}
			n++
			digit := strings.IndexByte(alphabet, digits[at])
			if at == 0 {
				digits[at] = alphabet[(digit+1+n%6)%7]
			} else {
				digits[at] = alphabet[(digit+1+n%61)%62]
			}
			is := decrypt(string(text))
			sum += distance(was, is)
			tag += bits.OnesCount64(binary.BigEndian.Uint64(was[8:]) ^ binary.BigEndian.Uint64(is[8:]))
		}
		if mean, half := float64(sum)/float64(n), float64(tag)/float64(n); mean < 62 || mean > 66 || half < 30.6 || half > 33.4 {
			t.Errorf("character %d of 22 changes %.2f bits and %.2f of the tag on average; want 64 and 32", at+1, mean, half)
		}
	}
}

func newAES(t *testing.T, key []byte) interface{ Decrypt(dst, src []byte) } {
	t.Helper()
	c, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheTextOfAnotherPrefixIsRefused(t *testing.T) {
	key := testKey(1)
	prefixes := []string{"order", "orders", "Order", "order_", "order_item", "item", "o", "rder", "_order", "order_order"}
	for _, writer := range prefixes {
		for _, reader := range prefixes {
			if writer == reader {
				continue
			}
			r := newCodec(t, reader, key)
			for _, id := range someIDs(50) {
				text := newCodec(t, writer, key).Encode(id)
				refuses(t, r, text, "it is of "+writer)
				// With the other prefix in front, the block alone says so.
				refuses(t, r, reader+"_"+text[len(writer)+1:], "its block is of "+writer)
			}
		}
	}
}

func TestTheTextOfAnotherKeyIsRefused(t *testing.T) {
	a, b := namesakes()
	near := bytes.Clone(a)
	near[len(near)-1] ^= 1
	r := newCodec(t, "order", a)
	for _, key := range [][]byte{b, near, bytes.Repeat(a[:16], 2), testKey(1000)} {
		w := newCodec(t, "order", key)
		for _, id := range someIDs(200) {
			text := w.Encode(id)
			if bytes.Equal(key, b) != (text[6:7] == keyName(a)) && bytes.Equal(key, b) {
				t.Fatalf("%q has the name %s; want %s, for the block to be decrypted", text, text[6:7], keyName(a))
			}
			refuses(t, r, text, "it was written with another key")
			refuses(t, r, "order_"+keyName(a)+text[7:], "it was written with another key, and names this one")
		}
	}
}

func TestTheFirstKeyWritesAndAllRead(t *testing.T) {
	before, after := testKey(1), testKey(2)
	old := newCodec(t, "order", before)
	added := newCodec(t, "order", before, after) // first, so that all can read what some will write
	moved := newCodec(t, "order", after, before)
	removed := newCodec(t, "order", after)
	for _, id := range someIDs(200) {
		a, b := old.Encode(id), removed.Encode(id)
		if got := added.Encode(id); got != a {
			t.Fatalf("Encode(%d) = %q with a key added at the end; want %q, as before", id, got, a)
		}
		if got := moved.Encode(id); got != b || got == a {
			t.Fatalf("Encode(%d) = %q with the key in front; want %q, as with it alone", id, got, b)
		}
		for _, text := range []string{a, b} {
			for _, c := range []*publicid.Codec{added, moved} {
				if got, err := c.Decode(text); got != id || err != nil {
					t.Fatalf("Decode(%q) = %d, %v; want %d, nil", text, got, err, id)
				}
			}
		}
		refuses(t, old, b, "its key is not there yet")
		refuses(t, removed, a, "its key was removed")
	}
}

func TestManyKeysHaveNamesOfTheirOwn(t *testing.T) {
	var keys [][]byte
	names := map[string]bool{}
	for n := uint64(0); len(keys) < 62; n++ { // all names that there are
		if key := testKey(n); !names[keyName(key)] {
			names[keyName(key)] = true
			keys = append(keys, key)
		}
	}
	all := newCodec(t, "order", keys...)
	for _, key := range keys {
		if got, err := all.Decode(newCodec(t, "order", key).Encode(orderID)); got != orderID || err != nil {
			t.Errorf("Decode(the text of key %s) = %d, %v; want %d, nil", keyName(key), got, err, orderID)
		}
	}
}

func TestANegativeIDDoesNotDecode(t *testing.T) {
	c := newCodec(t, "order", testKey(1))
	for _, id := range []types.Snowflake{-1, -2, -orderID, math.MinInt64, math.MinInt64 + 1} {
		text := c.Encode(id)
		if len(text) != len("order_")+23 {
			t.Errorf("Encode(%d) = %q; want a text of the usual form", id, text)
		}
		refuses(t, c, text, "it is negative")
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	a, b := namesakes()
	secret := []byte("secret of 16 by!")
	type config = publicid.Config
	for _, test := range []struct {
		config config
		want   string
	}{
		{config{}, `publicid: Config.Prefix is "": want 1 to 40 characters of A-Z, a-z, 0-9, -, ., _ and ~`},
		{config{Prefix: strings.Repeat("p", 41)}, `publicid: Config.Prefix is "` + strings.Repeat("p", 41) + `": want 1 to 40`},
		{config{Prefix: strings.Repeat("p", 1<<20)}, `p"… (1048576 bytes): want 1 to 40`},
		{config{Prefix: "order"}, "publicid: Config.Keys is empty: want at least one key"},
		{config{Prefix: "order", Keys: [][]byte{secret, nil}}, "publicid: Config.Keys[1] is 0 bytes: want 16 or 32 bytes"},
		{config{Prefix: "order", Keys: [][]byte{secret[:15]}}, "publicid: Config.Keys[0] is 15 bytes: want 16 or 32 bytes"},
		{config{Prefix: "order", Keys: [][]byte{append(secret, secret[:8]...)}}, "Config.Keys[0] is 24 bytes"}, // of AES too, but not here
		{config{Prefix: "order", Keys: [][]byte{append(secret, append(secret, 'x')...)}}, "Config.Keys[0] is 33 bytes"},
		{config{Prefix: "order", Keys: [][]byte{secret, secret}}, "publicid: Config.Keys[1]: want a key whose name is not "},
		{config{Prefix: "order", Keys: [][]byte{a, secret, b}}, "publicid: Config.Keys[2]: want a key whose name is not '" + keyName(a) + "'"},
	} {
		c, err := publicid.New(test.config)
		if c != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New(%.60q, %d keys) = %v, %v; want an error with %q", test.config.Prefix, len(test.config.Keys), c, err, test.want)
		}
		if ve := (*core.ValueError)(nil); !errors.As(err, &ve) || ve.Package != "publicid" || len(err.Error()) > 300 {
			t.Errorf("New = %T %v; want a short *core.ValueError of publicid", err, err)
		}
		if err != nil && (strings.Contains(err.Error(), string(secret[:8])) || strings.Contains(err.Error(), strconv.Itoa(int(secret[0]))+" ")) {
			t.Errorf("New = %v; want nothing of a key in it", err)
		}
	}
	for b := range 256 {
		prefix := "a" + string([]byte{byte(b)}) + "b"
		_, err := publicid.New(config{Prefix: prefix, Keys: [][]byte{secret}})
		if ok := strings.IndexByte(alphabet+"-._~", byte(b)) >= 0; (err == nil) != ok {
			t.Errorf("New(%q) = %v; want it accepted: %v", prefix, err, ok)
		}
	}
}

func TestACodecDoesNotRetainItsKeys(t *testing.T) {
	key := testKey(2)
	c := newCodec(t, "order", key)
	text := c.Encode(orderID)
	clear(key)
	if got := c.Encode(orderID); got != text {
		t.Errorf("Encode(%d) = %q after the slice was cleared; want %q", orderID, got, text)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		if printed := fmt.Sprintf(verb, c); strings.Contains(printed, fmt.Sprint(testKey(2)[0], " ", testKey(2)[1])) {
			t.Errorf("Sprintf(%q) of a Codec has the key in it", verb)
		}
	}
}

func TestACodecServesSeveralGoroutines(t *testing.T) {
	c := newCodec(t, "order", testKey(1), testKey(2))
	want := map[types.Snowflake]string{}
	for _, id := range someIDs(500) {
		want[id] = c.Encode(id)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for id, text := range want {
				if got := c.Encode(id); got != text {
					t.Errorf("Encode(%d) = %q; want %q", id, got, text)
				}
				if got, err := c.Decode(text); got != id || err != nil {
					t.Errorf("Decode(%q) = %d, %v; want %d, nil", text, got, err, id)
				}
				if _, err := c.Decode(text[:len(text)-1] + "!"); err == nil {
					t.Errorf("Decode(%q!) = nil; want an error", text[:len(text)-1])
				}
			}
		})
	}
	group.Wait()
}

var sink string

func TestEncodeAllocatesItsResultAndDecodeNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector, a sync.Pool drops what it is given")
	}
	for _, prefix := range []string{"o", "order", strings.Repeat("p", 40)} {
		c := newCodec(t, prefix, testKey(1), testKey(2))
		text := c.Encode(orderID)
		if n := testing.AllocsPerRun(1000, func() { sink = c.Encode(orderID) }); n != 1 {
			t.Errorf("Encode with prefix %s makes %v allocations; want 1", prefix, n)
		}
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := c.Decode(text); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("Decode(%q) makes %v allocations; want 0", text, n)
		}
	}
}
