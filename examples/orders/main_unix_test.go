//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

func TestCtrlCEndsTheProgramInPlainWordsWithExitCode130(t *testing.T) {
	t.Parallel()
	// The products come through a named pipe, which opens when the program opens it
	// too, so the signal comes before the first of many orders.
	files := sampleFiles(t)
	delete(files, csvload.ProductsFile)
	orders, details := &strings.Builder{}, &strings.Builder{}
	header, _, _ := strings.Cut(files[csvload.OrdersFile], "\n")
	fmt.Fprintln(orders, header)
	header, _, _ = strings.Cut(files[csvload.LinesFile], "\n")
	fmt.Fprintln(details, header)
	for n := 1; n <= 20000; n++ {
		fmt.Fprintf(orders, "%d,AALTO,1,2024-02-19 00:00:00.000,NULL,NULL,1,1.00,a,b,c,d,e,f\n", n)
		fmt.Fprintf(details, "%d,1,1.00,1,0\n", n)
	}
	files[csvload.OrdersFile], files[csvload.LinesFile] = orders.String(), details.String()
	dir, file := folder(t, files), dbFile(t)
	fifo := filepath.Join(dir, csvload.ProductsFile)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("this system has no named pipes here: %v", err)
	}

	cmd := program(t, "-db", file, "-data", dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.WriteString(sampleFiles(t)[csvload.ProductsFile]); err != nil {
		t.Fatal(err)
	}
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says it
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code = %d; want 130", got)
	}
	got := stderr.String()
	if !strings.HasSuffix(got, "orders: interrupted\n") || strings.Contains(got, "context") || strings.Contains(got, "sql:") {
		t.Errorf("stderr = %q; want the word interrupted and none of a driver", got)
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout = %q; want nothing", &stdout)
	}
	// Nearly always: the signal came before the last file was there to be read.
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return
	}
	db := raw(t, file)
	wantNumber(t, db, 0, "SELECT count(*) FROM gorm_imports WHERE finished_at IS NOT NULL")
	orphans := "SELECT count(*) FROM gorm_orders o WHERE (SELECT count(*) FROM gorm_order_items l WHERE l.order_id = o.id) <> 1"
	wantNumber(t, db, 0, orphans)
	wantNumber(t, db, 0, strings.ReplaceAll(orphans, "gorm_", "sqlx_"))
}
