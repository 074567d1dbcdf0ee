package publicid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/snowkey/snowkey/types"
)

// ErrInvalid is matched by every error of Decode: no Codec with this prefix and one of these keys has
// written the text. Answer a client as if the row did not exist.
var ErrInvalid = errors.New("publicid: invalid text")

// maxPrefix lets a whole text be seen in an error, which cuts at maxQuoted.
const (
	maxPrefix = maxQuoted - len("_") - 1 - blockDigits
	maxQuoted = 64
)

// A Config says what a [Codec] is for, and which keys it has.
type Config struct {
	// Prefix names what the IDs are of, such as "order". A text of another prefix is refused. It has
	// 1 to 40 characters of A-Z, a-z, 0-9, "-", ".", "_" and "~", which no URL escapes.
	Prefix string

	// Keys are the secrets, 16 or 32 random bytes each, for AES-128 or AES-256. The first one writes,
	// and all read. Codecs of several prefixes may have the same. The package comment says how to
	// change them.
	Keys [][]byte
}

// A Codec writes and reads the public form of IDs. Use [New]. It is immutable and safe for
// concurrent use; share one, rather than copying it.
type Codec struct {
	prefix string // with the underscore
	tag    uint64 // the half of the block that says what the ID is of
	name   byte   // of the key that writes
	keys   [len(digits)]cipher.Block

	// blocks has a *[16]byte for each call that runs. A variable would be allocated by each call,
	// because the compiler cannot see that a cipher.Block does not keep it.
	blocks sync.Pool
}

// New returns a Codec, or a [*types.ArgumentError], which shows no key. It does not retain the slices. Two
// keys that have one name, as one pair in 62 has, are refused: make another.
func New(config Config) (*Codec, error) {
	if !isPrefix(config.Prefix) {
		return nil, refuse("Config.Prefix", quote(config.Prefix), "1 to "+strconv.Itoa(maxPrefix)+" characters of A-Z, a-z, 0-9, -, ., _ and ~")
	}
	if len(config.Keys) == 0 {
		return nil, refuse("Config.Keys", "empty", "at least one key")
	}
	c := &Codec{prefix: config.Prefix + "_", tag: prefixTag(config.Prefix), name: keyName(config.Keys[0])}
	c.blocks.New = func() any { return new([aes.BlockSize]byte) }
	for i, key := range config.Keys {
		field := fmt.Sprintf("Config.Keys[%d]", i)
		if len(key) != 16 && len(key) != 32 {
			return nil, refuse(field, strconv.Itoa(len(key))+" bytes", "16 or 32 bytes")
		}
		name := keyName(key)
		if c.keys[values[name]] != nil {
			return nil, refuse(field, "", fmt.Sprintf("a key whose name is not %q, that of a key before it; make another key", name))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("publicid: %s: %w", field, err)
		}
		c.keys[values[name]] = block
	}
	return c, nil
}

func refuse(name, value, want string) error {
	return &types.ArgumentError{Package: "publicid", Name: name, Value: value, Want: want}
}

// isPrefix reports whether s can be a prefix: unreserved characters of RFC 3986.
func isPrefix(s string) bool {
	for i := range len(s) {
		if values[s[i]] == none && strings.IndexByte("-._~", s[i]) < 0 {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= maxPrefix
}

// prefixTag returns the half of a block that is the prefix's.
func prefixTag(prefix string) uint64 {
	sum := sha256.Sum256([]byte("snowkey publicid prefix " + prefix))
	return binary.BigEndian.Uint64(sum[:])
}

// keyName returns the name of a key, a digit. Whoever has a text learns these six bits of an HMAC,
// which do not help to find the key.
func keyName(key []byte) byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("snowkey publicid key name"))
	return digits[binary.BigEndian.Uint64(mac.Sum(nil))%uint64(len(digits))]
}

// Encode returns the public form of id: the prefix and 24 characters. Key 0, which no row has, is
// written and read as any other. Decode refuses the text of a negative id, as the parsers of types
// refuse its short forms.
func (c *Codec) Encode(id types.Snowflake) string {
	var b [maxQuoted]byte
	return string(c.append(b[:0], id))
}

func (c *Codec) append(b []byte, id types.Snowflake) []byte {
	block := c.blocks.Get().(*[aes.BlockSize]byte)
	binary.BigEndian.PutUint64(block[:8], uint64(id))
	binary.BigEndian.PutUint64(block[8:], c.tag)
	c.keys[values[c.name]].Encrypt(block[:], block[:])
	hi, lo := binary.BigEndian.Uint64(block[:8]), binary.BigEndian.Uint64(block[8:])
	c.blocks.Put(block)
	return appendDigits(append(append(b, c.prefix...), c.name), hi, lo)
}

// Decode returns the ID whose public form is text. An error matches [ErrInvalid] and quotes at most
// 64 bytes of the text. That a text decodes does not mean that the row still exists, or that the
// client may see it.
func (c *Codec) Decode(text string) (types.Snowflake, error) {
	id, wrong := c.decode(text)
	if wrong != "" {
		return 0, fmt.Errorf("%w %s: %s", ErrInvalid, quote(text), wrong)
	}
	return id, nil
}

// decode returns what is wrong with text, or nothing.
func (c *Codec) decode(text string) (id types.Snowflake, wrong string) {
	code, ok := strings.CutPrefix(text, c.prefix)
	if !ok || code == "" || values[code[0]] == none {
		return 0, c.want()
	}
	hi, lo, ok := parseDigits(code[1:])
	if !ok {
		return 0, c.want()
	}
	key := c.keys[values[code[0]]]
	if key == nil {
		return 0, fmt.Sprintf("no key has the name %q; it is mistyped, or its key was removed", code[0])
	}
	block := c.blocks.Get().(*[aes.BlockSize]byte)
	binary.BigEndian.PutUint64(block[:8], hi)
	binary.BigEndian.PutUint64(block[8:], lo)
	key.Decrypt(block[:], block[:])
	id, tag := types.Snowflake(binary.BigEndian.Uint64(block[:8])), binary.BigEndian.Uint64(block[8:])
	c.blocks.Put(block)
	if tag != c.tag || id < 0 {
		return 0, "it is mistyped, or was written for another prefix or with another key"
	}
	return id, ""
}

func (c *Codec) want() string {
	return "want " + c.prefix + " and the 23 characters of 0-9A-Za-z that Encode writes"
}

// quote quotes rejected input, cut so that a megabyte of it does not become a megabyte of log.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}
