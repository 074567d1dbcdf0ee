package main

import (
	"bufio"
	"context"
	"math"
	"strings"
)

// scripts ask for the words that may follow those that are written.
var scripts = map[string]string{
	"bash": `_snowkey() {
	COMPREPLY=($(compgen -W "$(snowkey completion -- "${COMP_WORDS[@]:0:COMP_CWORD}")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _snowkey snowkey
`,
	"zsh": `#compdef snowkey
_snowkey() { compadd -- ${(f)"$(snowkey completion -- "${(@)words[1,CURRENT-1]}")"} }
compdef _snowkey snowkey
`,
	"fish": `complete -c snowkey -f -a '(snowkey completion -- (commandline -opc))'
`,
}

var completion = command{
	name:    "completion",
	summary: "print what completes commands and flags in a shell",
	args:    "bash | zsh | fish",
	most:    math.MaxInt, // the scripts write a line
	words:   []string{"bash", "zsh", "fish"},
	text: `Prints the completions of a shell. The lines are for its configuration:

    source <(snowkey completion bash)
    source <(snowkey completion zsh)
    snowkey completion fish | source`,
	run: func(_ context.Context, _ *options, out *bufio.Writer, args []string) error {
		script := scripts[strings.Join(args, " ")]
		if len(args) > 0 && args[0] == "snowkey" { // from a script: the words before the one to complete
			script = strings.Join(following(args[1:]), "\n") + "\n"
		}
		if script == "" {
			return usagef("want the name of one shell: bash, zsh or fish")
		}
		_, err := out.WriteString(script)
		return err
	},
}

// following returns the words that may follow those of a command line.
func following(words []string) []string {
	if len(words) == 0 {
		return strings.Fields(names())
	}
	c, err := find(words[0])
	if err != nil {
		return nil
	}
	all, last := c.words, words[len(words)-1]
	if c.name == help.name {
		all = strings.Fields(names())
	}
	visitFlags(c, func(name, argument, _ string, _ []string) { all = append(all, name) })
	visitFlags(c, func(name, argument, _ string, names []string) {
		if argument != "" && last == name {
			all = names
		}
	})
	return all
}
