package core_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/snowkey/snowkey/core"
)

// The pods of a StatefulSet are numbered from 0, and Kubernetes tells each its
// number when the manifest asks for it:
//
//	env:
//	- name: SNOWKEY_WORKER
//	  valueFrom:
//	    fieldRef:
//	      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
//
// A missing or empty variable must stop the program: number 0 belongs to a pod.
func ExampleStaticWorker() {
	_ = os.Setenv("SNOWKEY_WORKER", "3") // what Kubernetes does

	worker, err := strconv.ParseInt(os.Getenv("SNOWKEY_WORKER"), 10, 64)
	if err != nil {
		log.Fatalf("SNOWKEY_WORKER: %v", err)
	}
	gen, err := core.New(core.Config{Worker: core.StaticWorker(worker)})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Worker)
	// Output: 3
}
