package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	about = `A key of snowkey is a number of 64 bits that holds the time at which it was made, the worker that made it, and a sequence number. snowkey takes keys apart and makes them, for people who work with tables. Only a command with -db asks a server.`
	exits = `The exit code is 0 if all went well, 1 if a key was bad or the work failed, 2 if the command line says too little or something wrong, and 130 after Ctrl-C. Those of doctor are in its help.`
)

var help = command{
	name:    "help",
	summary: "explain the commands",
	args:    "[command]",
	most:    1,
	text:    `Explains a command, or lists all. With -man it writes the manual page, for man -l and for /usr/local/share/man/man1/snowkey.1.`,
	flags:   "man",
	run: func(_ context.Context, o *options, out *bufio.Writer, args []string) error {
		if o.man {
			return writeManual(out)
		}
		if len(args) == 1 {
			c, err := find(args[0])
			if err != nil {
				return err
			}
			return writeHelp(out, c)
		}
		text := "usage: snowkey command [flags] [arguments]\n\n" + wrap(about, "") + "\n"
		for _, c := range commands {
			text += fmt.Sprintf("  %-11s %s\n", c.name, c.summary)
		}
		_, err := io.WriteString(out, text+"\nsnowkey help command explains one.\n\n"+wrap(exits, ""))
		return err
	},
}

var version = command{
	name:    "version",
	summary: "print the version",
	text:    `Prints the version of snowkey, and of the Go that it was built with.`,
	run: func(_ context.Context, _ *options, out *bufio.Writer, _ []string) error {
		number := "(devel)"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			number = info.Main.Version
		}
		_, err := fmt.Fprintf(out, "snowkey %s %s %s/%s\n", number, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	},
}

// usage is the line that calls a command.
func (c command) usage() string {
	flags := ""
	if c.flags != "" {
		flags = " [flags]"
	}
	return strings.TrimSpace("snowkey " + c.name + flags + " " + c.args)
}

// visitFlags calls each with the flags of a command, their arguments and what they do. Names are
// those that the argument may be, if it is one of some.
func visitFlags(c command, each func(name, argument, about string, names []string)) {
	new(options).flags(c).VisitAll(func(f *flag.Flag) {
		argument, about := flag.UnquoteUsage(f)
		var names []string
		if c, ok := f.Value.(interface{ choices() []string }); ok {
			names = c.choices()
			about += ": " + strings.Join(names, ", ")
		}
		each("-"+f.Name, argument, about, names)
	})
}

func writeHelp(out io.Writer, c command) error {
	text, line := "", "usage: "
	for i, form := range strings.Split(c.usage(), " | ") { // which no line divides
		switch {
		case i == 0:
			line += form
		case len(line)+len(" | ")+len(form) > maxWidth:
			text, line = text+line+"\n", "       | "+form
		default:
			line += " | " + form
		}
	}
	text += line + "\n"
	for paragraph := range strings.SplitSeq(c.text, "\n\n") {
		text += "\n" + wrap(paragraph, "")
	}
	if c.flags != "" {
		text += "\n"
	}
	visitFlags(c, func(name, argument, about string, _ []string) {
		text += strings.TrimRight("  "+name+" "+argument, " ") + "\n" + wrap(about, "      ")
	})
	_, err := io.WriteString(out, text)
	return err
}

// wrap breaks a paragraph into lines, unless it keeps its own.
func wrap(paragraph, indent string) string {
	if strings.HasPrefix(paragraph, "    ") {
		return paragraph + "\n"
	}
	text, line := "", indent
	for word := range strings.FieldsSeq(paragraph) {
		if len(line)+len(word) > maxWidth {
			text, line = text+strings.TrimSuffix(line, " ")+"\n", indent
		}
		line += word + " "
	}
	return text + strings.TrimSuffix(line, " ") + "\n"
}

// writeManual writes the manual page in roff.
func writeManual(out io.Writer) error {
	roff := strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace
	text := ".\\\" Written by snowkey help -man.\n.TH SNOWKEY 1\n.SH NAME\nsnowkey \\- take keys apart, and make them\n" +
		".SH SYNOPSIS\n.B snowkey\n.I command\n[flags] [arguments]\n.SH DESCRIPTION\n" + roff(about) + "\n.SH COMMANDS\n"
	for _, c := range commands {
		text += ".SS " + roff(c.usage()) + "\n"
		for paragraph := range strings.SplitSeq(c.text, "\n\n") {
			if strings.HasPrefix(paragraph, "    ") {
				paragraph = ".nf\n" + paragraph + "\n.fi"
			}
			text += ".PP\n" + roff(paragraph) + "\n"
		}
		visitFlags(c, func(name, argument, about string, _ []string) {
			text += ".TP\n" + roff(name+" "+argument) + "\n" + roff(about) + "\n"
		})
	}
	_, err := io.WriteString(out, text+".SH EXIT STATUS\n"+roff(exits)+"\n")
	return err
}
