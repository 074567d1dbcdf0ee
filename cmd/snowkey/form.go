package main

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// A form is a way to write keys.
type form struct {
	name  string
	write func(types.Snowflake) string
	parse func(string) (types.Snowflake, error)
}

var forms = []form{
	{"decimal", types.Snowflake.String, types.Parse},
	{"base62", types.Snowflake.Base62, types.ParseBase62},
	{"base58", types.Snowflake.Base58, types.ParseBase58},
	{"base32", types.Snowflake.Base32, types.ParseBase32},
	{"uuid", writeUUID, parseUUID},
}

// read reads a key in the only form that the text can have.
func read(text string) (found types.Snowflake, err error) {
	var all []string
	for _, f := range forms {
		if id, err := f.parse(text); err == nil {
			found = id
			all = append(all, fmt.Sprintf("%d in %s", id, f.name))
		}
	}
	switch len(all) {
	case 1:
		return found, nil
	case 0:
		return 0, fmt.Errorf("%.64q is no key: want a decimal 0..9223372036854775807, the 11 characters of base62 or base58, the 13 of base32, or its UUID", text)
	}
	return 0, fmt.Errorf("%q may be %s: choose with -form", text, strings.Join(all, " or "))
}

func writeUUID(id types.Snowflake) string {
	u := id.UUID()
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// parseUUID reads the text of a UUID in either case, as RFC 9562 wants it.
func parseUUID(text string) (types.Snowflake, error) {
	u, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err == nil && len(u) == 16 {
		if id, err := types.FromUUID([16]byte(u)); err != nil || writeUUID(id) == strings.ToLower(text) {
			return id, err
		}
	}
	return 0, fmt.Errorf("%.64q is not a UUID of a key, such as %s", text, writeUUID(0))
}
