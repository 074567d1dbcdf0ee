package dialect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A state is an error of a driver of PostgreSQL.
type state struct{ code, text string }

func (s state) Error() string    { return s.text }
func (s state) SQLState() string { return s.code }

func TestErrorsThatAPoolerCausesSayWhatToChange(t *testing.T) {
	for _, test := range []struct {
		err    error
		advice string
	}{
		{state{"26000", `prepared statement "x" does not exist`}, "default_query_exec_mode=exec"},
		{state{"42P05", `prepared statement "x" already exists`}, "binary_parameters=yes"},
		{state{"08P01", "bind message supplies 2 parameters, but prepared statement \"\" requires 1"}, "binary_parameters=yes"},
		{state{"08P01", "transaction blocks not allowed in statement pooling mode"}, "transaction or session mode"},
		{fmt.Errorf("begin: %w", dialect.ErrNoTransactions), "transaction or session mode"},
		{state{"08P01", "unsupported startup parameter: search_path"}, ""},
		{state{"23505", "prepared statement"}, ""},
		{errors.New("transaction blocks not allowed"), ""},
	} {
		err := fmt.Errorf("take: %w", test.err)
		got := dialect.ExplainPooler(err)
		if !strings.HasPrefix(got.Error(), err.Error()) || !errors.Is(got, test.err) {
			t.Errorf("ExplainPooler(%v) = %v; want the error first, and wrapped", err, got)
		}
		if test.advice == "" && got != err {
			t.Errorf("ExplainPooler(%v) = %v; want the error itself", err, got)
		}
		if !strings.Contains(got.Error(), test.advice) {
			t.Errorf("ExplainPooler(%v) = %v; want %q in it", err, got, test.advice)
		}
		if again := dialect.ExplainPooler(got); again != got {
			t.Errorf("ExplainPooler(%v) = %v; want it unchanged", got, again)
		}
	}
	if err := dialect.ExplainPooler(nil); err != nil {
		t.Errorf("ExplainPooler(nil) = %v; want nil", err)
	}
}
