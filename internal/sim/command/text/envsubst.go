package text

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var envsubstSpec = command.Spec{
	Name: "envsubst", Synopsis: "[OPTION] [SHELL-FORMAT]",
	About: "Substitutes the values of environment variables.",
	Options: []command.Option{
		{Short: 'v', Long: "variables", Help: "output the variables occurring in SHELL-FORMAT"},
		{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"},
	},
	NoHelp: true,
}

func runEnvsubst(t *kernel.Task) int {
	a, status, ok := envsubstSpec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	if a.Has("h") || a.Has("V") {
		w.String("Usage: envsubst [OPTION] [SHELL-FORMAT]\n\nSubstitutes the values of environment variables.\n")
		return 0
	}
	if len(a.Operands) > 1 {
		t.Errorf("too many arguments")
		return 1
	}
	if a.Has("v") {
		if len(a.Operands) == 0 {
			t.Errorf("missing arguments")
			return 1
		}
		variables([]byte(a.Operands[0]), func([]byte) {}, func(name string, _ []byte) { w.String(name + "\n") })
		return 0
	}
	var only map[string]bool
	if len(a.Operands) == 1 {
		only = map[string]bool{}
		variables([]byte(a.Operands[0]), func([]byte) {}, func(name string, _ []byte) { only[name] = true })
	}
	return command.EachFile(t, []string{"-"}, func(_ string, r *command.Reader) {
		for line, ok := r.Record('\n'); ok; line, ok = r.Record('\n') {
			variables(line, w.Bytes, func(name string, text []byte) {
				if only != nil && !only[name] {
					w.Bytes(text)
					return
				}
				w.String(t.Getenv(name))
			})
		}
	})
}

// variables finds $NAME and ${NAME}, and the text between them.
func variables(b []byte, text func([]byte), variable func(name string, whole []byte)) {
	start := 0
	for i := 0; i < len(b); {
		if b[i] != '$' {
			i++
			continue
		}
		from := i + 1
		brace := from < len(b) && b[from] == '{'
		if brace {
			from++
		}
		end := from
		for end < len(b) && (b[end] == '_' || b[end]|0x20 >= 'a' && b[end]|0x20 <= 'z' || end > from && b[end] >= '0' && b[end] <= '9') {
			end++
		}
		whole := end
		if brace {
			whole++
		}
		if end == from || brace && (end == len(b) || b[end] != '}') {
			i++
			continue
		}
		text(b[start:i])
		variable(string(b[from:end]), b[i:whole])
		i, start = whole, whole
	}
	text(b[start:])
}

var spongeSpec = command.Spec{
	Name: "sponge", Synopsis: "[-a] <file>",
	About:   "Soak up all input from stdin and write it to <file>.",
	Options: []command.Option{{Short: 'a', Help: "append"}, {Short: 'h'}},
	NoHelp:  true,
}

func runSponge(t *kernel.Task) int {
	a, status, ok := spongeSpec.Parse(t)
	if !ok {
		return status
	}
	if a.Has("h") || len(a.Operands) > 1 {
		command.Stdout(t).String("sponge [-a] <file>: soak up all input from stdin and write it to <file>\n")
		return 0
	}
	r, err := command.StdinReader(t)
	if err != nil {
		command.FailFile(t, "failed to read from stdin", err)
		return 1
	}
	defer r.Close()
	b, err := r.All()
	if err != nil {
		command.FailFile(t, "failed to read from stdin", err)
		return 1
	}
	if len(a.Operands) == 0 {
		command.Stdout(t).Bytes(b)
		return 0
	}
	flags := linux.O_TRUNC
	if a.Has("a") {
		flags = linux.O_APPEND
	}
	o, err := command.Create(t, a.Operands[0], flags)
	if err != nil {
		command.FailFile(t, a.Operands[0], err)
		return 1
	}
	defer func() { _ = o.Close() }()
	if _, err := o.Write(b); err != nil {
		command.FailFile(t, a.Operands[0], err)
		return 1
	}
	return 0
}
