package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// lines calls each with the lines of a file and their numbers, and with an error in place of one
// that is longer than a key. The last one needs no end, and the end may be that of Windows. It
// writes out whenever it waits for input, so that what was read is answered.
func lines(ctx context.Context, in io.Reader, out *bufio.Writer, each func(number int, text string, err error) error) error {
	// Nothing ends a read of a terminal, so Ctrl-C ends the program beside it.
	var working sync.Mutex
	working.Lock()
	context.AfterFunc(ctx, func() {
		working.Lock()
		os.Exit(exitCode(errInterrupted))
	})
	r := bufio.NewReader(in)
	for number := 1; ; number++ {
		if r.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
			working.Unlock()
			_, _ = r.Peek(1) // its error comes again
			working.Lock()
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		text, err := r.ReadSlice('\n')
		var bad error
		if errors.Is(err, bufio.ErrBufferFull) {
			bad = fmt.Errorf("%.64q… is longer than a key", text)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := each(number, string(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))), bad); err != nil {
			return err
		}
	}
}
