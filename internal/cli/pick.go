package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/step"
)

// A picker asks about each part of a proposal, as git add -p does.
type picker struct {
	in   *bufio.Scanner
	out  io.Writer
	quit bool
}

func newPicker(in io.Reader, out io.Writer) *picker {
	return &picker{in: bufio.NewScanner(in), out: out}
}

const pickHelp = `y - apply it
n - do not apply it
a - apply it and the rest of the file
d - apply neither it nor the rest of the file
q - apply nothing that is left
`

// ask returns a letter of the answer to a question. The end of the input is q.
func (p *picker) ask(question string) (byte, error) {
	for {
		fmt.Fprintf(p.out, "%s [y,n,a,d,q,?]? ", question)
		if !p.in.Scan() {
			fmt.Fprintln(p.out)
			return 'q', p.in.Err()
		}
		switch answer := strings.ToLower(strings.TrimSpace(p.in.Text())); answer {
		case "y", "n", "a", "d", "q":
			return answer[0], nil
		}
		fmt.Fprint(p.out, pickHelp)
	}
}

// pick implements step.Application.Pick.
func (p *picker) pick(o *step.Offer) (c step.Choice, err error) {
	if p.quit {
		return c, nil
	}
	name := OneLine(o.Name())
	fmt.Fprintf(p.out, "%s: %s", name, toldChange(&o.Difference))
	if o.Why != "" {
		fmt.Fprintf(p.out, "; %s", OneLine(o.Why))
	}
	fmt.Fprintln(p.out)
	if len(o.Hunks) == 0 {
		p.show(o.Text)
		answer, err := p.ask("apply the change of " + name)
		p.quit = answer == 'q'
		c.All = answer == 'y' || answer == 'a'
		return c, err
	}
	for i := range o.Hunks {
		p.show(o.Hunks[i].Text)
		answer, err := p.ask(fmt.Sprintf("apply hunk %d of %d of %s", i+1, len(o.Hunks), name))
		if err != nil {
			return c, err
		}
		switch answer {
		case 'y':
			c.Hunks = append(c.Hunks, i)
		case 'a':
			for k := i; k < len(o.Hunks); k++ {
				c.Hunks = append(c.Hunks, k)
			}
			return c, nil
		case 'd':
			return c, nil
		case 'q':
			p.quit = true
			return c, nil
		}
	}
	return c, nil
}

// show writes a diff. It is of a sandbox, so nothing of it controls the terminal.
func (p *picker) show(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(p.out, printable(strings.TrimSuffix(line, "\n")))
	}
}
