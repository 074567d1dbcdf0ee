// Program consumer uses snowkeyvet as a user's linter does.
package main

import (
	"fmt"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func main() { fmt.Println("the analyzer", keycheck.Analyzer.Name) }
