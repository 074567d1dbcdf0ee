package core

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The functions that read a number from the environment, by their names.
var fromEnvironment = map[string]func(name string) (int64, error){
	"WorkerFromEnv":     WorkerFromEnv,
	"DatacenterFromEnv": DatacenterFromEnv,
}

func TestANumberFromTheEnvironmentIsDecimalDigitsOnly(t *testing.T) {
	const name = "SNOWKEY_TEST_NUMBER"
	for function, read := range fromEnvironment {
		for _, test := range []struct {
			value string
			want  int64 // -1: refused
		}{
			{"0", 0}, {"7", 7}, {"1023", 1023}, {"2147483647", 2147483647},
			{"", -1}, {" 7", -1}, {"7 ", -1}, {"+7", -1}, {"-1", -1}, {"07", -1}, {"0x7", -1},
			{"1_0", -1}, {"7.0", -1}, {"1e3", -1}, {"٣", -1}, {"2147483648", -1}, {"9223372036854775808", -1}, {"orders-3", -1},
		} {
			t.Setenv(name, test.value)
			n, err := read(name)
			if test.want < 0 {
				var bad *ValueError
				if n != 0 || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "core: environment variable "+name+" is ") {
					t.Errorf("%s(%q) = %v, %v; want a *ValueError that names the variable", function, test.value, n, err)
				}
				continue
			}
			if n != test.want || err != nil {
				t.Errorf("%s(%q) = %v, %v; want %d", function, test.value, n, err, test.want)
			}
		}
		if n, err := read("SNOWKEY_TEST_NO_SUCH_VARIABLE"); n != 0 || err == nil || !strings.Contains(err.Error(), "not set") {
			t.Errorf("%s(unset) = %v, %v; want an error that says so", function, n, err)
		}
		t.Setenv(name, strings.Repeat("9", 1<<20))
		if _, err := read(name); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s(1 MB) = an error of %d bytes; want a short one", function, len(err.Error()))
		}
	}
}

func TestANumberFromTheEnvironmentThatIsRefusedHasItsKindAndItsLimit(t *testing.T) {
	const name = "SNOWKEY_TEST_NUMBER"
	t.Setenv(name, "2147483648")
	for function, kind := range map[string]string{"WorkerFromEnv": "worker", "DatacenterFromEnv": "datacenter"} {
		want := `core: environment variable SNOWKEY_TEST_NUMBER is "2147483648": want a ` + kind +
			" number in decimal digits, such as 0 or 12, at most 2147483647"
		if _, err := fromEnvironment[function](name); err == nil || err.Error() != want {
			t.Errorf("%s(2147483648) = error %v; want %s", function, err, want)
		}
	}
}

func TestWorkerFromHostnameTakesNamesOfStatefulSetPodsOnly(t *testing.T) {
	for _, test := range []struct {
		host string
		want int64 // -1: refused
	}{
		{"orders-0", 0}, {"orders-12", 12}, {"a-b-c-9999", 9999}, {"0-1", 1},
		{"orders-3.orders.shop.svc.cluster.local", 3},
		{"", -1}, {"orders", -1}, {"orders-", -1}, {"-3", -1}, {"3", -1}, {"orders-03", -1}, {"orders-x", -1},
		{"orders--3", -1}, {"Orders-3", -1}, {"orders_3", -1}, {"orders-3\n", -1}, {"orders-+3", -1},
		{"orders-7d4b9c6f5d-x2x9z", -1}, {"orders-7d4b9c6f5d-24567", -1}, // of a Deployment
		{"orders-3.", 3}, {".orders-3", -1},
	} {
		w, err := WorkerFromHostname(test.host)
		if test.want < 0 {
			var bad *ValueError
			if w != 0 || !errors.As(err, &bad) {
				t.Errorf("WorkerFromHostname(%q) = %v, %v; want a *ValueError", test.host, w, err)
			}
			continue
		}
		if w != test.want || err != nil {
			t.Errorf("WorkerFromHostname(%q) = %v, %v; want %d", test.host, w, err, test.want)
		}
	}
}

func TestANumberFromOutsideIsCheckedAgainstTheLayout(t *testing.T) {
	w, err := WorkerFromHostname("orders-32")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Layout: Twitter(), Worker: StaticWorker(w)})
	if err == nil {
		_ = g.Close(context.Background())
	}
	if err == nil || !strings.Contains(err.Error(), "core: Config.Worker is 32: want 0..31") {
		t.Errorf("New(worker 32 of 5 bits) = %v; want an error with value and range", err)
	}

	t.Setenv("SNOWKEY_TEST_DATACENTER", "32")
	datacenter, err := DatacenterFromEnv("SNOWKEY_TEST_DATACENTER")
	if err != nil {
		t.Fatal(err)
	}
	g, err = New(Config{Layout: Twitter(), Datacenter: datacenter, Worker: StaticWorker(1)})
	if err == nil {
		_ = g.Close(context.Background())
	}
	if err == nil || !strings.Contains(err.Error(), "core: Config.Datacenter is 32: want 0..31") {
		t.Errorf("New(datacenter 32 of 5 bits) = %v; want an error with value and range", err)
	}
}
