package errtext

import (
	"errors"
	"fmt"
	"testing"
)

func TestAnErrorIsFoundBehindAnotherText(t *testing.T) {
	cause := errors.New("lease: gone")
	for want, err := range map[string]error{
		"other":                        Reword("other", cause),
		"lease: Close: gone":           Prefix("lease: Close: ", "lease: ", cause),
		"key: lease: gone":             Prefix("key: ", "core: ", cause),
		"lease: Close: x: lease: gone": Prefix("lease: Close: ", "lease: ", fmt.Errorf("x: %w", cause)),
	} {
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("got %q, wraps %v: %t; want %q", err, cause, errors.Is(err, cause), want)
		}
	}
}
