package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

var update = flag.Bool("update", false, "write what the commands print into testdata and snowkey.1")

// TestMain makes the test binary the command too, so that the race detector sees it.
func TestMain(m *testing.M) {
	if os.Getenv("SNOWKEY_IS_THE_COMMAND") != "" {
		main()
	}
	flag.Parse()
	os.Exit(m.Run())
}

// shell returns a bash that finds snowkey.
func shell(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, "snowkey")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "SNOWKEY_IS_THE_COMMAND=1", "GORACE=atexit_sleep_ms=0", "TZ=Asia/Kathmandu", "PATH="+folder+":"+os.Getenv("PATH"))
	return cmd
}

// snowkey runs a command line, and returns what it prints and its exit code.
func snowkey(t *testing.T, line, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := shell(t, line)
	var out, bad strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &bad
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String(), bad.String(), cmd.ProcessState.ExitCode()
}

// has reports whether a program is installed. CI has all.
func has(t *testing.T, name string) bool {
	t.Helper()
	_, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Errorf("%s is not installed", name)
	} else if err != nil {
		t.Logf("%s is not installed", name)
	}
	return err == nil
}

// The files of testdata are what a terminal shows. A line that begins with "$ " is a command.
func TestCommandsPrintWhatIsShown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(text)) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					out, _, code := snowkey(t, "exec 2>&1\n"+command, "")
					got.WriteString(line + out)
					if code != 0 {
						got.WriteString("= " + strconv.Itoa(code) + "\n")
					}
				}
			}
			if *update {
				if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(text) {
				t.Errorf("commands print\n%s\nwant\n%s", got.String(), text)
			}
		})
	}
}

func TestTheManualPageIsThatOfTheHelp(t *testing.T) {
	out, _, _ := snowkey(t, "snowkey help -man", "")
	if *update {
		if err := os.WriteFile("snowkey.1", []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile("snowkey.1"); err != nil || string(text) != out {
		t.Errorf("snowkey.1 is another text than snowkey help -man prints (%v): run go test -update", err)
	}
	for _, c := range commands {
		if help, _, code := snowkey(t, "snowkey help "+c.name, ""); code != 0 || !strings.HasPrefix(help, "usage: snowkey "+c.name) || c.summary == "" {
			t.Errorf("snowkey help %s = %s, %d", c.name, help, code)
		}
	}
	if has(t, "groff") {
		check := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-z", "-Tutf8", "snowkey.1")
		if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff -man snowkey.1 = %v\n%s; want no warning", err, out)
		}
	}
}

// RELIABILITY: what is not a key is refused in every form, and the others are decoded.
func TestABadKeyIsReportedWithItsLineAndTheOthersGoOn(t *testing.T) {
	bad := []string{"", " 5", "5 ", "+5", "-0", "-1", "007", "1_000", "0x10", "1e3", "1.0", "٣", "１２", "5\x00", "9223372036854775808",
		"99999999999999999999", strings.Repeat("1", 1<<20), "\xff\xfe", "zzzzzzzzzzz", "0TjQe_ZOMMR", "04w86bb0g4007", "ZZZZZZZZZZZZZ",
		"0271065a-c102-8000-9773-6e6f776b6570", "ffffffff-ffff-8fff-9f73-6e6f776b6579", "0271065ac10280009773-6e6f776b6579", "\"5\""}
	const good = "177026472345612305"
	input := good + "\r\n"
	for _, text := range bad {
		input += text + "\n"
	}
	input += good // without an end
	for _, form := range []string{"", "decimal", "base62", "base58", "base32", "uuid"} {
		args, want := "snowkey decode -json", 2
		if form != "" {
			args += " -form " + form
			if form != "decimal" {
				want = 0
			}
		}
		out, complaints, code := snowkey(t, args, input)
		if got := strings.Count(out, `{"key":"`+good+`"`); got != want || strings.Count(out, "\n") != want || code != 1 {
			t.Errorf("%s of %d bad lines between two good ones = %s, %d; want %d keys and code 1", args, len(bad), out, code, want)
		}
		for i := range bad {
			if want := "\nsnowkey: line " + strconv.Itoa(i+2) + ": "; !strings.Contains("\n"+complaints, want) {
				t.Errorf("%s: no complaint about %.64q on line %d:\n%s", args, bad[i], i+2, complaints)
			}
		}
		for line := range strings.Lines(complaints) {
			if len(line) > 500 {
				t.Errorf("%s: a complaint of %d bytes: %.100s…; want the bad text cut", args, len(line), line)
			}
		}
	}
}

func TestAKeyIsReadInEveryForm(t *testing.T) {
	for _, id := range []types.Snowflake{0, 1, 175928847299117063, 1541815603606036480, 1<<63 - 1} {
		for _, f := range forms {
			text := f.write(id)
			out, _, code := snowkey(t, "snowkey decode -layout mastodon -json -form "+f.name+" "+text, "")
			if code != 0 || !strings.HasPrefix(out, `{"key":"`+id.String()+`"`) {
				t.Errorf("decode -form %s %s = %s, %d; want %d", f.name, text, out, code, id)
			}
			if got, err := read(text); err == nil && got != id {
				t.Errorf("read(%s) = %d; want %d or an error", text, got, id)
			}
		}
	}
}

func TestALineThatIsHugeIsNotKept(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var got []string
	huge := io.MultiReader(strings.NewReader("6\n"), io.LimitReader(ones{}, 1<<25), strings.NewReader("\n7"))
	err := lines(t.Context(), huge, bufio.NewWriter(io.Discard), func(number int, text string, err error) error {
		got = append(got, fmt.Sprint(number, " ", len(text) < 5000, " ", err))
		return nil
	})
	runtime.ReadMemStats(&after)
	want := []string{"1 true <nil>", `2 true "` + strings.Repeat("1", 64) + `"… is longer than a key`, "3 true <nil>"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("lines = %q, %v; want %q", got, err, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("a line of 32 MB took %d bytes; want less than 1 MB", n)
	}
}

// ones is a reader without an end.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

func TestKeysAreAnsweredBeforeTheInputEnds(t *testing.T) {
	cmd := shell(t, "exec snowkey decode -json")
	in, out := pipes(t, cmd)
	if _, err := in.Write([]byte("7\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"key":"7"`) {
		t.Errorf("the answer to a first line = %q, %v; want it while the input goes on", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("decode that waits for input, after Ctrl-C: code %d; want 130", code)
	}
}

// pipes starts a command with pipes.
func pipes(t *testing.T, cmd *exec.Cmd) (in interface{ Write([]byte) (int, error) }, out *bufio.Reader) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return stdin, bufio.NewReader(stdout)
}

func TestGeneratedKeysIncreaseAndHaveTheWorker(t *testing.T) {
	before := time.Now()
	out, bad, code := snowkey(t, "snowkey generate -worker 9 -datacenter 3 -layout twitter -form base62 20000", "")
	if code != 0 || bad != "" {
		t.Fatal(bad, code)
	}
	last, count := types.Snowflake(0), 0
	for line := range strings.Lines(out) {
		id, err := types.ParseBase62(strings.TrimSuffix(line, "\n"))
		p := core.Twitter().Parts(id)
		if err != nil || id <= last || p.Worker != 9 || p.Datacenter != 3 || p.Time.Before(before.Truncate(time.Millisecond)) {
			t.Fatalf("after %d a line %q: %+v, %v; want a greater key of worker 9 in datacenter 3", last, line, p, err)
		}
		last, count = id, count+1
	}
	if count != 20000 {
		t.Errorf("%d keys; want 20000", count)
	}
}

func TestCtrlCEndsGenerateAfterAWholeLine(t *testing.T) {
	cmd := shell(t, "exec snowkey generate -worker 9 1000000000000")
	var bad bytes.Buffer
	cmd.Stderr = &bad
	_, out := pipes(t, cmd)
	var all []string
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			if line != "" {
				t.Errorf("the output ends with half a line: %q", line)
			}
			break
		}
		if all = append(all, line); len(all) == 100 {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	want := "snowkey: interrupted after " + strconv.Itoa(len(all)) + " of 1000000000000 keys\n"
	if code := cmd.ProcessState.ExitCode(); code != 130 || bad.String() != want {
		t.Errorf("after Ctrl-C: code %d, %s; want 130, %s", code, &bad, want)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n < 100 || n != len(all) {
		t.Errorf("%d keys, of which %d differ", len(all), n)
	}
}

func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	const line = "snowkey generate -layout javascript -worker 1 80000" // which take 1.5 s
	if _, bad, code := snowkey(t, line+" >/dev/null", ""); bad != "" || code != 0 {
		t.Errorf("%s with standard error in a pipe writes %s, %d; want nothing", line, bad, code)
	}
	if !has(t, "script") { // which makes a terminal
		return
	}
	out, _, code := snowkey(t, `script -qec "`+line+` | wc -l" /dev/null`, "")
	if !regexp.MustCompile(`\r\d+ of 80000 keys, \d+ %.*\r\x1b\[K.*80000`).MatchString(strings.ReplaceAll(out, "\n", " ")) || code != 0 {
		t.Errorf("%s on a terminal shows %q, %d; want its progress", line, out, code)
	}
}

func TestDecodeSaysOnATerminalThatItWaits(t *testing.T) {
	const waits = "type keys, each on a line; Ctrl-D ends"
	if out, bad, code := snowkey(t, "snowkey decode", "177026472345612305\n"); strings.Contains(bad, waits) || code != 0 {
		t.Errorf("decode of a pipe = %s, %s, %d; want no word about the terminal", out, bad, code)
	}
	if !has(t, "script") {
		return
	}
	// The key, and then Ctrl-D.
	out, _, code := snowkey(t, `script -qec "snowkey decode" /dev/null`, "177026472345612305\n\x04")
	if !strings.Contains(out, waits) || !strings.Contains(out, "2026-05-04T12:00:00.000Z") || code != 0 {
		t.Errorf("decode on a terminal = %q, %d; want %q, and the time of the key", out, code, waits)
	}
}

func TestTheVersionIsPrintedForAFlagToo(t *testing.T) {
	want, _, _ := snowkey(t, "snowkey version", "")
	for _, line := range []string{"snowkey --version", "snowkey -version"} {
		if out, bad, code := snowkey(t, line, ""); out != want || !strings.HasPrefix(out, "snowkey ") || code != 0 {
			t.Errorf("%s = %s, %s, %d; want %s", line, out, bad, code, want)
		}
	}
}

func TestWorkThatFailsIsReportedOnce(t *testing.T) {
	for _, line := range []string{"snowkey generate -worker 1 100000", "snowkey decode 5", "snowkey help"} {
		if _, bad, code := snowkey(t, line+" >/dev/full", ""); code != 1 || !strings.HasPrefix(bad, "snowkey: ") || strings.Count(bad, syscall.ENOSPC.Error()) != 1 {
			t.Errorf("%s >/dev/full = %s, %d; want the error once, and 1", line, bad, code)
		}
	}
	if _, bad, code := snowkey(t, "snowkey generate -worker 1 -bits 10/0/5/12 -epoch 2020-01-01T00:00:00Z", ""); code != 1 || !strings.Contains(bad, core.ErrTimeExhausted.Error()) {
		t.Errorf("generate with a layout that has ended = %s, %d; want ErrTimeExhausted and 1", bad, code)
	}
	if _, bad, _ := snowkey(t, "snowkey generate -worker 1 10000000000 | head -n 1", ""); bad != "" {
		t.Errorf("generate | head complains: %s", bad)
	}
}

func TestShellsCompleteCommandsFlagsAndNames(t *testing.T) {
	scripts := map[string]string{
		"bash": `source <(snowkey completion bash); c() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _snowkey; echo "${COMPREPLY[@]}"; }`,
		// What zsh's compadd gets, since it completes only in a terminal.
		"zsh":  `compdef() { :; }; compadd() { local w; for w in "${@:2}"; do [[ $w == $words[CURRENT]* ]] && echo -n "$w "; done; echo }; source <(snowkey completion zsh); c() { words=("$@"); CURRENT=$#; _snowkey; }`,
		"fish": `snowkey completion fish | source; function c; complete -C (string join ' ' -- $argv) | string join ' '; end`,
	}
	for shellName, script := range scripts {
		if !has(t, shellName) {
			continue
		}
		for words, want := range map[string]string{
			"snowkey de":                   "decode",
			"snowkey decode -l":            "-layout",
			"snowkey decode -layout tw":    "twitter",
			"snowkey range -dialect m":     "mariadb mysql",
			"snowkey sql -dialect mysql w": "worker",
			"snowkey completion f":         "fish",
			"snowkey help gen":             "generate",
			"snowkey decode -epoch x":      "",
			"snowkey nothing x":            "",
		} {
			cmd := shell(t, shellName+` -c "$SCRIPT"`)
			cmd.Env = append(cmd.Env, "SCRIPT="+script+"\nc "+words)
			out, err := cmd.CombinedOutput()
			got := strings.Fields(string(out))
			slices.Sort(got)
			if strings.Join(got, " ") != want {
				t.Errorf("%s completes %q with %q, %v; want %q", shellName, words, out, err, want)
			}
		}
	}
}
