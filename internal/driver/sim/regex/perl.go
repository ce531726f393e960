package regex

type perlFlags struct{}

func (p *parser) parsePerl() (*node, error) { return nil, syntaxErrorf("not yet") }
