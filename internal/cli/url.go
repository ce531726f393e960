package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// urlFlags say who may reach a port.
type urlFlags struct {
	remote  RemoteFlags
	public  bool
	private bool
	life    TimeFlag
	path    string
	json    bool
}

// A portURL is what the command answers in JSON.
type portURL struct {
	URL     string     `json:"url"`
	Public  bool       `json:"public"`
	Expires *time.Time `json:"expires,omitempty"` // of a signed one
}

// A publisher is a driver whose ports have URLs.
type publisher interface {
	PublicPort(ctx context.Context, id paddock.ID, port int) (client.PublicPort, error)
	SetPublic(ctx context.Context, id paddock.ID, port int, public bool) (client.PublicPort, error)
	SignURL(ctx context.Context, id paddock.ID, port int, lifetime time.Duration, path string) (client.PortURL, error)
}

func (a *App) urlCommand() *cobra.Command {
	var f urlFlags
	c := &cobra.Command{
		Use:   "url [flags] ID PORT",
		Short: "Give the URL of a port of a sandbox",
		Long: `Write the URL at which a browser reaches a port of a sandbox. A port is private: the
URL is signed, and lets whoever has it in for an hour, or for as long as --for says. With --public anyone
reaches the port, and the URL needs no signature; with --private that ends, and so do all
URLs that were signed for the port before, and connections to it. The server needs a domain
(paddock serve --domain). Where it has none, as your own server does, paddock forward
joins the port to this machine.

Exit status: 0, or 125 if there is no such sandbox, or no URL for its ports.`,
		Example: `  paddock url "$id" 8080
  paddock url --for 24h "$id" 8080
  paddock url --public "$id" 8080`,
		Args:                  cobra.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			port, _, err := parsePorts(args[1])
			if err == nil && strings.Contains(args[1], ":") {
				err = WithHint(fmt.Errorf("%q is no port: %w", args[1], paddock.Invalid), "write PORT, a number up to 65535")
			}
			if err != nil {
				return err
			}
			if err := f.check(c.Flags().Changed("for")); err != nil {
				return err
			}
			return a.With(c.Context(), &f.remote, func(ctx context.Context, r *Remote) error {
				return a.url(ctx, r, &f, paddock.ID(args[0]), port)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.public, "public", false, "let anyone reach the port")
	fs.BoolVar(&f.private, "private", false, "let nobody reach it without a key, or a URL that is signed from now on")
	fs.Var(&f.life, "for", "sign a URL that holds for this `time`, at most 7 days (default 1h)")
	fs.StringVar(&f.path, "path", "", "sign it for what is below this `path` alone")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object")
	f.remote.register(fs)
	return c
}

func (f *urlFlags) check(signed bool) error {
	if f.public && f.private || (f.public || f.private) && (signed || f.path != "") {
		return WithHint(fmt.Errorf("--public, --private and a signed URL (--for, --path) are three answers to one question: %w", paddock.Invalid), "give one of them")
	}
	return nil
}

func (a *App) url(ctx context.Context, r *Remote, f *urlFlags, id paddock.ID, port int) error {
	answer, err := f.ask(ctx, r, id, port)
	if err == nil && answer.URL == "" {
		err = fmt.Errorf("it is done, but the server has no domain for ports: %w", paddock.Unsupported)
	}
	if err != nil {
		if paddock.KindOf(err) == paddock.Unsupported {
			return WithHint(err, "paddock forward %s %d joins the port to this machine; a server gives URLs if it is started with --domain DOMAIN", id, port)
		}
		return err
	}
	if f.json {
		text, err := jsonLine(answer)
		if err != nil {
			return err
		}
		return a.Say("%s", text)
	}
	return a.Say("%s\n", answer.URL)
}

// ask has the server do what the flags say.
func (f *urlFlags) ask(ctx context.Context, r *Remote, id paddock.ID, port int) (portURL, error) {
	d, ok := r.Driver.(publisher)
	if !ok {
		return portURL{}, fmt.Errorf("this server has no URLs: %w", paddock.Unsupported)
	}
	if f.public || f.private {
		p, err := d.SetPublic(ctx, id, port, f.public)
		return portURL{URL: p.URL, Public: p.Public}, err
	}
	if f.life == 0 && f.path == "" {
		p, err := d.PublicPort(ctx, id, port)
		if err != nil || p.Public {
			return portURL{URL: p.URL, Public: p.Public}, err
		}
	}
	signed, err := d.SignURL(ctx, id, port, time.Duration(f.life), f.path)
	if err != nil {
		return portURL{}, err
	}
	return portURL{URL: signed.URL, Expires: &signed.Expires}, nil
}
