//go:build linux

package fire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/fire/disk"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

// A Machine is a host with its own disk, whose power can be cut. What was not synced may then
// be lost: see package disk.
type Machine struct {
	*Host
	Dir string // where its disk is mounted

	// Lost is the sum of what all power cuts have lost.
	Lost disk.Lost

	on     string // a file that exists while the power is on, and has the delay of the clock
	input  io.Closer
	orders *json.Encoder
	done   *json.Decoder
}

// A diskOrder is an order to the process with the disk. Zero fields have no effect.
type diskOrder struct {
	Off      bool
	Steps    int
	Patience time.Duration

	Fail bool

	On bool
}

// A diskReply is the result of a diskOrder.
type diskReply struct {
	Lost  disk.Lost
	Error string
}

// A diskPlace is the order to the process with the disk when it begins.
type diskPlace struct {
	Dir    string
	Config disk.Config
}

// holding is the role of the process with the disk. A separate process is needed because programs on a
// machine wait for the disk, and the garbage collector of one process cannot wait for itself. The disk is
// unmounted when standard input ends, which happens when the test ends in whatever way.
const holding = "disk"

func serveDisk(order []byte) error {
	var p diskPlace
	if err := json.Unmarshal(order, &p); err != nil {
		return err
	}
	d, err := disk.New(p.Dir, p.Config)
	if err != nil {
		return err
	}
	replies := json.NewEncoder(os.Stdout)
	err = replies.Encode(diskReply{})
	for orders := json.NewDecoder(os.Stdin); err == nil; {
		var o diskOrder
		if err = orders.Decode(&o); err != nil {
			break // the end of the test
		}
		var r diskReply
		switch {
		case o.Off:
			d.Off(o.Steps, o.Patience)
		case o.Fail:
			d.Fail()
		case o.On:
			var err error
			if r.Lost, err = d.On(); err != nil {
				r.Error = err.Error()
			}
		}
		err = replies.Encode(r)
	}
	if err := d.Unmount(); err != nil {
		return errors.Join(err, syscall.Unmount(p.Dir, syscall.MNT_DETACH))
	}
	return nil
}

// Machine adds a host with a disk.
func (n *Network) Machine(t testing.TB, name string, c disk.Config) *Machine {
	t.Helper()
	base := t.TempDir()
	m := &Machine{Host: n.Host(name), Dir: filepath.Join(base, "disk"), on: filepath.Join(base, "on")}
	must(t, os.Mkdir(m.Dir, 0o777))
	cmd := role.Command(t, holding, diskPlace{m.Dir, c})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends with its input, and not by the keeper, which would leave the disk mounted
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	output, errOut := cmd.StdoutPipe()
	must(t, errors.Join(err, errOut, cmd.Start()))
	m.input, m.orders, m.done = input, json.NewEncoder(input), json.NewDecoder(output)
	t.Cleanup(func() {
		victims, err := m.kill()
		if err := errors.Join(err, m.gone(victims), input.Close(), cmd.Wait()); err != nil {
			t.Errorf("fire: the disk of %s: %v", name, err)
		}
	})
	if _, err := m.reply(); err != nil {
		t.Fatal(err)
	}
	must(t, m.powered(0))
	return m
}

// powered lets programs begin.
func (m *Machine) powered(late time.Duration) error {
	// Under another name first, so that no process reads half of it.
	if err := os.WriteFile(m.on+".new", []byte(late.String()), 0o666); err != nil {
		return err
	}
	return os.Rename(m.on+".new", m.on)
}

// Enter makes a command run on the machine, as [Host.Enter] does, except that it sees the disk
// that is mounted at any time, while the program ip gives others their own view of what was
// mounted when they started.
func (m *Machine) Enter(cmd *exec.Cmd) {
	path, err := exec.LookPath("nsenter")
	must(m.network.t, err)
	cmd.Args = append([]string{"nsenter", "--net=/run/netns/" + m.namespace, "--", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = path
}

func (m *Machine) reply() (disk.Lost, error) {
	var r diskReply
	if err := m.done.Decode(&r); err != nil {
		return disk.Lost{}, fmt.Errorf("fire: the disk has ended: %w", err)
	}
	if r.Error != "" {
		return disk.Lost{}, fmt.Errorf("fire: disk: %s", r.Error)
	}
	return r.Lost, nil
}

func (m *Machine) order(o diskOrder) (disk.Lost, error) {
	if err := m.orders.Encode(o); err != nil {
		return disk.Lost{}, err
	}
	return m.reply()
}

// CutPower cuts the power and turns it on again. All processes of the machine die. If steps is
// not zero, the cut comes at that write, operation on a directory or fsync of the disk, or when
// no further one comes. Afterwards the clock of the machine is late, like that of a machine
// with an empty battery.
func (m *Machine) CutPower(steps int, late time.Duration) error {
	// Programs that start from now on wait. Those that did not wait are on the host, and die.
	if err := os.Remove(m.on); err != nil {
		return err
	}
	if _, err := m.order(diskOrder{Off: true, Steps: steps, Patience: time.Second}); err != nil {
		return err
	}
	victims, err := m.kill()
	if err != nil {
		return err
	}
	if _, err := m.order(diskOrder{Fail: true}); err != nil {
		return err
	}
	if err := m.gone(victims); err != nil {
		return err
	}
	lost, err := m.order(diskOrder{On: true})
	if err != nil {
		return err
	}
	m.Lost.Sectors += lost.Sectors
	m.Lost.LostSectors += lost.LostSectors
	m.Lost.Operations += lost.Operations
	m.Lost.LostOperations += lost.LostOperations
	return m.powered(late)
}

// Powered waits until the power of a machine is on, and returns by how much its clock is late.
// A program on the machine must call it, with the directory of the disk, before it looks at the
// disk.
func Powered(dir string) (late time.Duration, err error) {
	for {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "on"))
		if !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return 0, err
			}
			return time.ParseDuration(string(text))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// kill kills all processes on the machine, and returns their numbers. They may live on until
// the disk has answered them.
func (m *Machine) kill() (victims map[int]bool, err error) {
	victims, err = m.processes()
	for pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	return victims, err
}

// gone waits until none of the processes exists any longer.
func (m *Machine) gone(victims map[int]bool) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		living := 0
		for pid := range victims {
			if syscall.Kill(pid, 0) == nil {
				living++
			}
		}
		switch {
		case living == 0:
			return nil
		case time.Since(began) > 20*time.Second:
			return fmt.Errorf("fire: %d processes on %s live in spite of SIGKILL", living, m.Name)
		}
	}
}

// processes returns the numbers of the processes on the machine.
func (m *Machine) processes() (map[int]bool, error) {
	text, err := output(exec.CommandContext(context.Background(), "ip", "netns", "pids", m.namespace))
	if err != nil {
		return nil, err
	}
	pids := map[int]bool{}
	for field := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids[pid] = true
	}
	return pids, nil
}
