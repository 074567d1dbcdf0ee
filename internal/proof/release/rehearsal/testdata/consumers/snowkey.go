// Program consumer runs the command as a user does, since nothing can import it.
package main

import (
	"fmt"
	"log"
	"os/exec"
)

func main() {
	out, err := exec.Command("go", "run", "github.com/snowkey/snowkey/cmd/snowkey", "range", "2026-05-04").CombinedOutput()
	if err != nil {
		log.Fatalf("%v\n%s", err, out)
	}
	fmt.Println("the command prints", len(out), "bytes")
}
