package core_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/snowkey/snowkey/core"
)

// A fixed number from the deployment. The pods of a StatefulSet are numbered from
// 0, and Kubernetes tells each its number when the manifest asks for it:
//
//	env:
//	- name: SNOWKEY_WORKER
//	  valueFrom:
//	    fieldRef:
//	      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
//
// A missing or empty variable stops the program: number 0 belongs to a pod.
func ExampleWorkerFromEnv() {
	_ = os.Setenv("SNOWKEY_WORKER", "3") // what Kubernetes does

	worker, err := core.WorkerFromEnv("SNOWKEY_WORKER")
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: core.StaticWorker(worker)})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Worker)

	_ = os.Setenv("SNOWKEY_WORKER", "")
	_, err = core.WorkerFromEnv("SNOWKEY_WORKER")
	fmt.Println(err)
	// Output:
	// 3
	// core: environment variable SNOWKEY_WORKER is "": want a worker number in decimal digits, such as 0 or 12, at most 2147483647
}

// Two regions that share no store. Each has its datacenter, and worker numbers of its
// own.
func ExampleDatacenterFromEnv() {
	_ = os.Setenv("SNOWKEY_DATACENTER", "2") // what the region's deployment does

	datacenter, err := core.DatacenterFromEnv("SNOWKEY_DATACENTER")
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{
		Layout:     core.Twitter(), // it has 5 bits for the datacenter
		Datacenter: datacenter,
		Worker:     core.StaticWorker(3),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Datacenter, gen.Stats().Worker)
	// Output: 2 3
}

// The same without a variable: the ordinal is the end of the pod's host name.
func ExampleWorkerFromHostname() {
	worker, err := core.WorkerFromHostname("orders-3") // from os.Hostname
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker)
	// Output: 3
}
