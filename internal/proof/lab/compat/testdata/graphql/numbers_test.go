package graphql_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/servers/node"
)

// gqlgen's Int has the 64 bits of a Go int. GraphQL's has 32, which graphql-js checks.
func TestAKeyThatIsANumberInGraphQLLosesDigits(t *testing.T) {
	var s server
	got := s.ask(t, `{doubles(id: "1234567890123456789") {int int64 float}}`, `{}`)
	if want := `{"data":{"doubles":{"int":1234567890123456789,"int64":1234567890123456789,"float":1.2345678901234568e+18}}}`; got != want {
		t.Fatalf("doubles = %s; want %s", got, want)
	}
	const want = "1234567890123456800 1234567890123456800 1234567890123456800\n" +
		"Int cannot represent non 32-bit signed integer value: 1234567890123456800\n"
	if printed := node.Run(t, node.Project(t, "testdata"), "numbers.mjs", got); printed != want {
		t.Errorf("JavaScript reads %s; want %s", printed, want)
	}
}
