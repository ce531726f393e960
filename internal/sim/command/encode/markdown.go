package encode

import (
	"bytes"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var markdownSpec = command.Spec{
	Name: "html-to-markdown", Synopsis: "[OPTION]... [FILE]",
	About: "Convert HTML to Markdown.",
	Options: []command.Option{
		{Short: 'b', Long: "bullet", Arg: command.Required, Name: "CHAR", Help: "bullet of lists: -, * or + (default -)"},
		{Short: 'c', Long: "code", Arg: command.Required, Name: "FENCE", Help: "fence of code blocks: ``` or ~~~ (default ```)"},
		{Short: 'r', Long: "hr", Arg: command.Required, Name: "STRING", Help: "horizontal rule (default ---)"},
		{Long: "heading-style", Arg: command.Required, Name: "STYLE", Help: "atx (# Heading, the default) or setext (underlined)"},
		{Long: "domain", Arg: command.Required, Name: "URL", Help: "make relative links absolute"},
	},
}

func runMarkdown(t *kernel.Task) int {
	a, status, ok := markdownSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 1 {
		return markdownSpec.Usage(t, "extra operand '%s'", a.Operands[1])
	}
	heading := commonmark.HeadingStyleATX
	bullet, fence, rule := "-", "```", "---"
	var options []converter.ConvertOptionFunc
	for _, f := range a.Flags {
		switch f.Key {
		case "b":
			bullet = f.Value
		case "c":
			fence = f.Value
		case "r":
			rule = f.Value
		case "heading-style":
			switch f.Value {
			case "atx":
			case "setext":
				heading = commonmark.HeadingStyleSetext
			default:
				return markdownSpec.Usage(t, "unknown heading style '%s'", f.Value)
			}
		case "domain":
			options = append(options, converter.WithDomain(f.Value))
		}
	}
	conv := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHeadingStyle(heading), commonmark.WithBulletListMarker(bullet), commonmark.WithCodeBlockFence(fence), commonmark.WithHorizontalRule(rule)),
		table.NewTablePlugin(), strikethrough.NewStrikethroughPlugin(),
	))
	w := command.Stdout(t)
	failed := 0
	status = command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		b, err := r.All()
		if err != nil {
			return
		}
		// The tree takes much more than its text. How deep it is, the parser
		// bounds.
		t.Bound("string", int64(len(b)), t.K.Limits.String)
		t.Grow(20 * len(b))
		defer t.Shrink(20 * len(b))
		t.Step(len(b))
		out, err := conv.ConvertReader(bytes.NewReader(b), options...)
		if err != nil {
			t.Errorf("%s", err)
			failed = 1
			return
		}
		w.Bytes(out)
		if len(out) > 0 && out[len(out)-1] != '\n' {
			w.Byte('\n')
		}
	})
	return max(status, failed)
}
