package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

func auditCommand(a *cli.App, m machine) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Verify, read and attest what paddock run --audit recorded",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(auditVerifyCommand(a, m), auditAttestCommand(a, m), auditManifestCommand(a), auditTailCommand(a), auditKeyCommand(a))
	return c
}

func auditKeyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the public key that records are signed with",
		Long: `Print the fingerprint and the public key, in PEM, that records of this user are
signed with. Whoever is to verify them elsewhere needs either. The key is made
where there is none yet.

Exit status: 0, or 125 if there is no key and none can be made.`,
		Example: `  paddock audit key > public.pem
  paddock audit verify events.jsonl --key public.pem`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			key, err := a.AuditKey(chain.MakeKey)
			if err != nil {
				return err
			}
			text, err := chain.PublicPEM(key.Public())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Stdout, "%s\n%s", key.Fingerprint(), text)
			return err
		},
	}
}

// A verification is what `paddock audit verify --json` answers.
type verification struct {
	Version int    `json:"version"` // of this format: 1
	File    string `json:"file"`
	chain.Report
	Steps *stepsReport `json:"steps,omitempty"`
}

func auditVerifyCommand(a *cli.App, m machine) *cobra.Command {
	var key, seen, steps string
	var asJSON bool
	attested := attestedFlags{machine: m}
	c := &cobra.Command{
		Use:   "verify [flags] FILE|DIR|URL",
		Short: "Tell whether a record is as it was written",
		Long: `Tell whether a file of paddock run --audit is as it was written: every line is
there, in its place and unchanged, and the key signed them. The first line that
is wrong is told, and why.

Without --key it is this user's own key that must have signed it. Whoever has
the key can write a whole new file, and anybody can cut a file off behind a
signed line: note the last head, SEQ:HASH, elsewhere, and ask for it with --head.

A directory is that of paddock serve --audit: its segments, and those in "sent" below
it, are verified as one record, in which none may be missing, replaced, moved or cut
short. Whether there were others before the first or behind the last nobody can tell but
by --head, which may be of any of them.

An address, as paddock serve --audit-bucket takes it, is that of a bucket: its segments
are verified as those of a directory, each as it comes, and nothing of it is kept. The
region and keys are AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; they must
be let list the bucket and read its objects.

A file without its closing head is open: it is being written, its writer was
killed, or its end was cut off. That is no error, and told with a status of its
own. docs/security/audit.md tells what is proved and what is not.

With --steps, the journal of steps (paddock run --undo) is compared with the record,
which has the digest of each step's record in the journal: one that was changed,
that is missing or that was added is told. --steps=DIR names the journal of another
user or server.

With --attestation FILE, the signature of an attestation is verified, and what it
says is compared with the record, with the workspace of --workspace and with each
commit of --commit, as far as they are named; one of them must be. What nobody
named is told, and not compared. A quote of hardware in it is verified too. docs/security/attestation.md describes it.

Exit status: 0 if all is whole, 1 if something is wrong, 2 if nothing is wrong
and the file is open, or the directory or bucket lacks its first segments or the end of
its last, or --steps found something that nobody vouches for; 125 if it or the key cannot be read.`,
		Example: `  paddock audit verify events.jsonl
  paddock audit verify events.jsonl --key public.pem --head 121:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  paddock audit verify https://s3.eu-central-1.amazonaws.com/records/server-1/ --key public.pem
  paddock audit verify ../events.jsonl --attestation ../run.dsse --workspace . --commit HEAD`,
		RunE: func(c *cobra.Command, args []string) error {
			if attested.file != "" && steps != "" {
				return cli.WithHint(fmt.Errorf("--steps and --attestation are two comparisons: %w", paddock.Invalid), "make one after the other")
			}
			if attested.file != "" {
				return attested.verify(c.Context(), a, args, key, seen, asJSON)
			}
			if err := attested.alone(); err != nil {
				return err
			}
			if err := cli.OneArgument("FILE|DIR|URL")(c, args); err != nil {
				return err
			}
			o, err := wanted(a, key, seen)
			if err != nil {
				return err
			}
			said := newSaidSteps()
			if steps != "" {
				o.Each = said.line
			}
			found, err := verify(c.Context(), a, args[0], o)
			if err != nil {
				return err
			}
			if steps != "" && found.state() != chain.Wrong {
				single, closed := found.series == nil, found.state() == chain.Whole
				if found.steps, err = compareSteps(c.Context(), a, steps, said, single, closed); err != nil {
					return err
				}
			}
			if err := found.tell(a, asJSON); err != nil {
				return err
			}
			return verified(found.whole())
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&key, "key", "", "the `key` that must have signed it: a file with the public key, or its fingerprint sha256:… (default your own)")
	c.Flags().StringVar(&seen, "head", "", "a line that it must have, as `SEQ:HASH`: a head that was noted elsewhere")
	c.Flags().StringVar(&steps, "steps", "", "compare the journal of steps with it: your own, or that in a `directory` (--steps=DIR)")
	c.Flags().Lookup("steps").NoOptDefVal = ownJournal
	attested.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

// wanted says what a file is to be.
func wanted(a *cli.App, key, seen string) (o chain.Options, err error) {
	if seen != "" {
		p, err := chain.ParsePoint(seen)
		if err != nil {
			return o, cli.WithHint(fmt.Errorf("--head: %w", err), "paddock audit verify prints it: \"head: SEQ:HASH\"")
		}
		o.Seen = &p
	}
	switch {
	case key == "":
		own, err := a.AuditKey(chain.ReadKey)
		if errors.Is(err, paddock.NotFound) {
			return o, cli.WithHint(fmt.Errorf("there is no key to check the record with, because this user has signed no record on this machine: %w", paddock.NotFound), "--key FILE or --key FINGERPRINT; `paddock audit key` prints both where the file was written")
		}
		if err != nil {
			return o, err
		}
		o.Fingerprint = own.Fingerprint()
	case chain.IsFingerprint(key):
		o.Fingerprint = key
	default:
		data, err := cli.ReadDocument("public key", key)
		if err != nil {
			return o, err
		}
		public, err := chain.ParsePublic(data)
		if err != nil {
			return o, cli.WithHint(fmt.Errorf("--key %s: %w", key, err), "`paddock audit key` prints one; a fingerprint is sha256: and 64 digits")
		}
		o.Fingerprint = chain.Fingerprint(public)
	}
	return o, nil
}

// An outcome is what verifying a record found: of a file a report, of segments a series.
type outcome struct {
	name   string
	report *chain.Report
	series *segment.Series
	bucket bool // the segments are in a bucket, not in a directory
	steps  *stepsReport
}

// verify verifies a file, a directory or a bucket.
func verify(ctx context.Context, a *cli.App, name string, o chain.Options) (outcome, error) {
	if strings.Contains(name, "://") {
		return verifyBucket(ctx, a, name, o)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return verifySeries(name, o)
	}
	return verifyFile(name, o)
}

func verifyFile(name string, o chain.Options) (outcome, error) {
	f, size, err := openLog(name)
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	rep, err := chain.Verify(io.NewSectionReader(f, 0, size), o) // what is added meanwhile is not waited for
	if err != nil {
		return outcome{}, cli.WithHint(fmt.Errorf("%s: %w", name, err), "is the disk all right?")
	}
	return outcome{name: name, report: &rep}, nil
}

// verifySeries verifies the segments of a directory.
func verifySeries(name string, o chain.Options) (outcome, error) {
	dir, err := os.OpenRoot(name)
	if err != nil {
		return outcome{}, cli.WithHint(fmt.Errorf("%s: %w: %w", name, err, paddock.Denied), "a record is its owner's alone")
	}
	defer dir.Close()
	s, err := segment.Verify(dir, o)
	if err != nil {
		return outcome{}, cli.WithHint(fmt.Errorf("%s: %w", name, err), "name a directory of paddock serve --audit")
	}
	return outcome{name: name, series: &s}, nil
}

// verifyBucket verifies the segments of a bucket.
func verifyBucket(ctx context.Context, a *cli.App, address string, o chain.Options) (outcome, error) {
	b, err := segment.ParseBucket(address, a.Lookup)
	if err != nil {
		return outcome{}, cli.WithHint(fmt.Errorf("%s: %w", cli.OneLine(address), err), segment.BucketHint)
	}
	s, err := segment.VerifyBucket(ctx, b, o)
	if err != nil {
		return outcome{}, cli.WithHint(fmt.Errorf("%s: %w", b, err),
			"name it as paddock serve --audit-bucket has it, https://HOST/BUCKET/PREFIX/; AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are its region and keys, which must be let list it and read from it")
	}
	return outcome{name: b.String(), series: &s, bucket: true}, nil
}

// state says whether all is as it was written.
func (o outcome) state() chain.State {
	if o.series != nil {
		return o.series.State
	}
	return o.report.State
}

// whole is state, with the steps.
func (o outcome) whole() chain.State {
	if s := o.state(); s != chain.Whole || o.steps == nil {
		if s == chain.Open && o.steps != nil && o.steps.state() == chain.Wrong {
			return chain.Wrong
		}
		return s
	}
	return o.steps.state()
}

// tell prints the outcome.
func (o outcome) tell(a *cli.App, asJSON bool) error {
	if asJSON {
		return o.tellJSON(a)
	}
	if o.series != nil {
		if err := tellSeries(a, o.name, *o.series); err != nil {
			return err
		}
	} else {
		tellReport(a, o.name, *o.report)
	}
	if o.steps == nil {
		return nil
	}
	return o.steps.tell(a, o.name)
}

// tellJSON answers with one object.
func (o outcome) tellJSON(a *cli.App) error {
	switch {
	case o.bucket:
		return cli.PrintJSON(a.Stdout, struct {
			Version int    `json:"version"` // of this format: 1
			Bucket  string `json:"bucket"`
			segment.Series
			Steps *stepsReport `json:"steps,omitempty"`
		}{1, o.name, *o.series, o.steps})
	case o.series != nil:
		return cli.PrintJSON(a.Stdout, struct {
			Version int    `json:"version"` // of this format: 1
			Dir     string `json:"dir"`
			segment.Series
			Steps *stepsReport `json:"steps,omitempty"`
		}{1, o.name, *o.series, o.steps})
	default:
		return cli.PrintJSON(a.Stdout, verification{Version: 1, File: o.name, Report: *o.report, Steps: o.steps})
	}
}

// verified gives the exit status of a state.
func verified(s chain.State) error {
	switch s {
	case chain.Whole:
		return nil
	case chain.Open:
		return cli.ExitStatus(2)
	default:
		return cli.ExitStatus(1)
	}
}

func tellSeries(a *cli.App, name string, s segment.Series) error {
	if s.State == chain.Wrong {
		fmt.Fprintf(a.Stderr, "paddock: %s: %s\n", cli.OneLine(strings.TrimSuffix(name, "/")+"/"+s.Wrong), cli.OneLineOf(s.Why, cli.Paragraph))
		return nil
	}
	events := 0
	for _, v := range s.Segments {
		events += int(v.Events)
	}
	if err := a.Say("%s: %s: %s in %s\n", cli.OneLine(name), s.State, cli.Plural(events, "event", "events"), cli.Plural(len(s.Segments), "segment", "segments")); err != nil {
		return err
	}
	if s.Why != "" {
		if err := a.Say("  note:   %s\n", cli.OneLineOf(s.Why, cli.Paragraph)); err != nil {
			return err
		}
	}
	last := s.Segments[len(s.Segments)-1]
	if last.Head == nil {
		return nil
	}
	return a.Say("  key:    %s\n  signed: %s\n  head:   %s\n", last.Fingerprint, last.Head.Time.Format(time.RFC3339), last.Head.Point)
}

func tellReport(a *cli.App, name string, rep chain.Report) {
	if rep.State == chain.Wrong {
		fmt.Fprintf(a.Stderr, "paddock: %s:%d: %s\n", cli.OneLine(name), rep.Line, cli.OneLineOf(rep.Why, cli.Paragraph))
		if rep.Head != nil && rep.Problem != chain.BadHead {
			fmt.Fprintf(a.Stderr, "hint: the lines up to %d are as they were signed, at %s\n", rep.Head.Seq, rep.Head.Time.Format(time.RFC3339))
		}
		return
	}
	fmt.Fprintf(a.Stdout, "%s: %s: %s in %s\n", cli.OneLine(name), rep.State, cli.Plural(int(rep.Events), "event", "events"), cli.Plural(int(rep.Lines), "line", "lines"))
	if rep.Why != "" {
		fmt.Fprintf(a.Stdout, "  note:   %s\n", cli.OneLineOf(rep.Why, cli.Paragraph))
	}
	if rep.Log != "" {
		fmt.Fprintf(a.Stdout, "  log:    %s, begun %s\n", rep.Log, rep.Begun.Format(time.RFC3339))
		fmt.Fprintf(a.Stdout, "  key:    %s\n", rep.Fingerprint)
	}
	if rep.Head != nil {
		fmt.Fprintf(a.Stdout, "  signed: %s\n", rep.Head.Time.Format(time.RFC3339))
		fmt.Fprintf(a.Stdout, "  head:   %s\n", rep.Head.Point)
	}
}

// openLog opens a plain file and tells how long it is now. Where it is might be a
// place that commands could write to, so its kind is looked at after.
func openLog(name string) (*os.File, int64, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without waiting for the other end of a FIFO
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, cli.WithHint(fmt.Errorf("%s: there is no such file: %w", name, paddock.NotFound), "check the name")
	case err != nil:
		return nil, 0, cli.WithHint(fmt.Errorf("%s: %w: %w", name, errors.Unwrap(err), paddock.Denied), "a record is its owner's alone")
	}
	st, err := f.Stat()
	hint := "name a file of paddock run --audit"
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("it is no plain file: %w", paddock.Invalid)
		if st.IsDir() {
			hint = "name a file in it"
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, cli.WithHint(fmt.Errorf("%s: %w", name, err), "%s", hint)
	}
	return f, st.Size(), nil
}
