package alternatives

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Two regions have one worker number each from a store of their own. Both begin at 0.
func TestTwoRegionsMakeEqualKeysWithoutADatacenterNumber(t *testing.T) {
	l := core.Twitter()
	at := l.Epoch.Add(time.Hour)
	id := func(datacenter int64) types.Snowflake {
		id, err := l.Compose(core.Parts{Time: at, Datacenter: datacenter, Worker: 0, Sequence: 0})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if here, there := id(0), id(0); here != there {
		t.Errorf("the first keys of a millisecond are %d and %d; want one key twice", here, there)
	}
	if here, there := id(0), id(1); here == there {
		t.Errorf("with two datacenter numbers the first keys are both %d; want two", here)
	}

	t.Setenv("SNOWKEY_TEST_DATACENTER", "")
	if n, err := core.DatacenterFromEnv("SNOWKEY_TEST_DATACENTER"); err == nil {
		t.Errorf("DatacenterFromEnv(empty) = %d; want an error and not number 0", n)
	}
	t.Setenv("SNOWKEY_TEST_DATACENTER", "1")
	if n, err := core.DatacenterFromEnv("SNOWKEY_TEST_DATACENTER"); n != 1 || err != nil {
		t.Errorf("DatacenterFromEnv(1) = %d, %v; want 1", n, err)
	}
}

// lower16 is a worker number from the lower 16 bits of an address.
func lower16(address string) int {
	b := netip.MustParseAddr(address).As4()
	return int(b[2])<<8 + int(b[3])
}

// sum8 adds the last two bytes, and the addition wraps.
func sum8(address string) int {
	b := netip.MustParseAddr(address).As4()
	return int(b[2] + b[3])
}

func TestTwoAddressesHaveOneWorkerNumber(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(string) int
		a, b string
	}{
		{"the lower 16 bits", lower16, "10.0.1.7", "10.9.1.7"},
		{"the sum of two bytes", sum8, "10.21.5.211", "10.21.4.212"},
		{"two bridges of containers", lower16, "172.17.0.2", "172.17.0.2"},
	} {
		if x, y := c.of(c.a), c.of(c.b); x != y {
			t.Errorf("%s: %s and %s have the numbers %d and %d; want one", c.name, c.a, c.b, x, y)
		}
	}
}

// A random number of 1,024 per process: the birthday problem.
func TestRandomWorkerNumbersMeetSoon(t *testing.T) {
	meet := func(processes int) float64 {
		apart := 1.0
		for i := range processes {
			apart *= 1 - float64(i)/1024
		}
		return 1 - apart
	}
	for _, c := range []struct {
		processes int
		want      string
	}{{10, "4 %"}, {38, "50 %"}, {100, "99 %"}} {
		if got := fmt.Sprintf("%.0f %%", 100*meet(c.processes)); got != c.want {
			t.Errorf("of %d processes two have one number with probability %s; want %s", c.processes, got, c.want)
		}
	}
}
