package auxiliary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/attestation"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/quote"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// subjectFlags name what an attestation is about.
type subjectFlags struct {
	workspace  string
	commits    []string
	images     []string
	repository string
}

func (f *subjectFlags) register(fs *pflag.FlagSet, verb string) {
	fs.StringVarP(&f.workspace, "workspace", "w", "", "`directory` whose files are "+verb+", but for .git at its top")
	fs.StringArrayVar(&f.commits, "commit", nil, "commit that is "+verb+": `REV`, which is HEAD, a branch, a tag, or a whole digest (repeatable)")
	fs.StringArrayVar(&f.images, "image", nil, "image that is "+verb+": its `digest` as a registry names it, sha256:… (repeatable)")
	fs.StringVar(&f.repository, "repository", "", "`directory` whose .git has the revisions of --commit (default: the workspace, or the working directory)")
}

// none reports whether nothing is named.
func (f *subjectFlags) none() bool {
	return f.workspace == "" && len(f.commits) == 0 && len(f.images) == 0
}

// subjects digests what is named.
func (f *subjectFlags) subjects(ctx context.Context) ([]attestation.Subject, error) {
	var list []attestation.Subject
	if f.workspace != "" {
		dir, err := openDir("--workspace", f.workspace)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		digest, err := attestation.DigestWorkspace(ctx, dir)
		if err != nil {
			return nil, cli.WithHint(fmt.Errorf("--workspace %s: %w", f.workspace, err), "every file must be readable, and none may change meanwhile")
		}
		list = append(list, attestation.Workspace(digest))
	}
	for _, rev := range f.commits {
		digest, err := f.commit(rev)
		if err != nil {
			return nil, cli.WithHint(fmt.Errorf("--commit %s: %w", rev, err), "name the whole digest, which `git rev-parse %s^{commit}` prints", rev)
		}
		if s := attestation.Commit(digest); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	for _, digest := range f.images {
		if !chain.IsFingerprint(digest) {
			return nil, cli.WithHint(fmt.Errorf("--image %s: it is no digest of an image: %w", digest, paddock.Invalid), "it is sha256: and 64 hexadecimal digits, which a push prints")
		}
		if s := attestation.Image(strings.TrimPrefix(digest, "sha256:")); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}

func (f *subjectFlags) commit(rev string) (string, error) {
	if attestation.IsCommit(rev) {
		return rev, nil
	}
	name := f.repository
	if name == "" {
		name = f.workspace
	}
	if name == "" {
		name = "."
	}
	dir, err := openDir("--repository", name)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return attestation.Resolve(dir, rev)
}

func openDir(flag, name string) (*os.Root, error) {
	dir, err := os.OpenRoot(name)
	if err != nil {
		kind := paddock.Denied
		if errors.Is(err, os.ErrNotExist) {
			kind = paddock.NotFound
		}
		return nil, cli.WithHint(fmt.Errorf("%s %s: %w: %w", flag, name, errors.Unwrap(err), kind), "name a directory that you may read")
	}
	return dir, nil
}

func auditAttestCommand(a *cli.App, m machine) *cobra.Command {
	var f subjectFlags
	q := quoteFlags{machine: m}
	var sandbox, started, key, recordKey string
	c := &cobra.Command{
		Use:   "attest [flags] FILE|DIR|URL",
		Short: "Attest in which sandbox a workspace or commits were made",
		Long: `Write an attestation to standard output: an in-toto Statement in a DSSE
envelope. It is about the files of --workspace as they are now, about each commit of
--commit and each image of --image. It says what the record has of the sandbox: its ID
and tier, its controls as they were verified, the digests of its policy and of Paddock
itself, the record's last head and length, how many programs, refusals, uses of keys and
steps there were, secrets by name, and times.

The record is verified first, as paddock audit verify does; a file must be closed. It
is signed with this user's own key, which records are signed with, or with the one of
--key. The passphrase of a key of OpenSSH is PADDOCK_KEY_PASSPHRASE, or is asked for at
the terminal. Nobody vouches but the signer that these files came from this sandbox.

With --quote, the hardware of a confidential machine (AMD SEV-SNP, Intel TDX) signs the
record's last head, the signing key and --nonce.

Git is not run: the digest of a revision is read from the files below .git. Write the
attestation to a file outside of the workspace. docs/security/attestation.md describes it.

Exit status: 0, 1 if the record is wrong, 125 if there is no attestation for another reason.`,
		Example: `  paddock audit attest ../events.jsonl --workspace . --commit HEAD > ../run.dsse
  paddock audit attest /var/lib/records --sandbox job-1 --commit 5d1c9e0f7a3b2c4d6e8f0a1b2c3d4e5f60718293 --key ~/.ssh/id_ed25519 > run.dsse`,
		Args: cli.OneArgument("FILE|DIR|URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.none() {
				return cli.WithHint(fmt.Errorf("there is nothing to attest: %w", paddock.Invalid), "add --workspace DIR, --commit REV, --image DIGEST, or several")
			}
			o, err := wanted(a, recordKey, "")
			if err != nil {
				return err
			}
			signer, done, err := signingKey(c.Context(), a, key)
			if err != nil {
				return err
			}
			defer done()
			tally := attestation.NewTally(sandbox)
			if started != "" {
				at, err := time.Parse(time.RFC3339Nano, started)
				if err != nil {
					return cli.WithHint(fmt.Errorf("--started %s: it is no time: %w", started, paddock.Invalid), "copy it from the record, as in 2026-01-02T15:04:05.678901234Z")
				}
				tally = tally.At(at)
			}
			o.Each = tally.Line
			found, err := verify(c.Context(), a, args[0], o)
			if err != nil {
				return err
			}
			if err := found.attestable(a); err != nil {
				return err
			}
			p, err := tally.Predicate()
			if err != nil {
				return cli.WithHint(fmt.Errorf("%s: %w", found.name, err), "%s", hintForRecord(err))
			}
			subjects, err := f.subjects(c.Context())
			if err != nil {
				return err
			}
			if p.Quote, err = q.take(p.Record, signer); err != nil {
				return err
			}
			data, err := attestation.Sign(attestation.New(subjects, p), signer)
			if err != nil {
				return err
			}
			return a.Say("%s", data)
		},
	}
	c.Flags().SortFlags = false
	f.register(c.Flags(), "attested")
	c.Flags().StringVar(&sandbox, "sandbox", "", "`ID` of the sandbox, where the record has several")
	c.Flags().StringVar(&started, "started", "", "`time` of its start, as the record has it, where several sandboxes had the ID")
	c.Flags().StringVar(&key, "key", "", "sign with the key in this `FILE` (default your own): a private key in PEM or of OpenSSH, or a public one (.pub) whose private key your SSH agent has; Ed25519, ECDSA P-256 or RSA")
	q.register(c.Flags())
	c.Flags().StringVar(&recordKey, "record-key", "", "the `key` that must have signed the record: a file with the public key, or its fingerprint sha256:… (default your own)")
	return c
}

// hintForRecord says what to do about a record of which no attestation can be made.
func hintForRecord(err error) string {
	if errors.Is(err, paddock.Invalid) {
		return "--sandbox ID names one, and --started TIME one of several with the same ID"
	}
	return "records of paddock run --audit and paddock serve --audit have it since they record the start of sandboxes; `paddock audit tail` shows what there is"
}

// attestable refuses a record that is wrong or has no end.
func (o outcome) attestable(a *cli.App) error {
	switch {
	case o.state() == chain.Wrong:
		if err := o.tell(a, false); err != nil {
			return err
		}
		return cli.ExitStatus(1)
	case o.report != nil && o.report.State == chain.Open:
		return cli.WithHint(fmt.Errorf("%s: %s: %w", o.name, o.report.Why, paddock.Conflict), "attest it when the run has ended; of a record that lost its end there is no attestation")
	}
	return nil
}

func auditManifestCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "manifest DIR",
		Short: "Write the manifest of a workspace, whose digest an attestation has",
		Long: `Write the manifest of a directory to standard output: kind, mode, digest and path of
each file below it but .git at its top, with a zero byte behind each. An attestation of the
workspace has the SHA-256 of it. docs/security/attestation.md describes it.

Exit status: 0, or 125 if a file cannot be read.`,
		Example: `  paddock audit manifest . | sha256sum
  paddock audit manifest . | tr '\0' '\n'`,
		Args: cli.OneArgument("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := openDir("manifest", args[0])
			if err != nil {
				return err
			}
			defer dir.Close()
			if err := attestation.WriteManifest(c.Context(), a.Stdout, dir); err != nil {
				return cli.WithHint(fmt.Errorf("%s: %w", args[0], err), "every file must be readable, and none may change meanwhile")
			}
			return nil
		},
	}
}

// attestedFlags say which attestation is to be verified.
type attestedFlags struct {
	file string
	key  string
	subjectFlags

	machine     machine
	quoted      bool
	nonce       string
	measurement string
}

func (f *attestedFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "attestation", "", "verify the attestation in this `FILE`, and compare it with what is named")
	fs.StringVar(&f.key, "attestation-key", "", "the public key that must have signed it: a `FILE` in PEM or with a line of authorized_keys (default: that of --key, or your own)")
	f.subjectFlags.register(fs, "compared")
	fs.BoolVar(&f.quoted, "quote", false, "the attestation must have a quote of a confidential machine; one that it has is verified in any case")
	fs.StringVar(&f.nonce, "nonce", "", "the nonce that the quote must have, in `hex` digits")
	fs.StringVar(&f.measurement, "measurement", "", "the measurement that the quote's machine must have, in `hex` digits: MEASUREMENT of SEV-SNP, or MRTD of TDX")
}

// alone refuses flags that mean nothing without an attestation.
func (f *attestedFlags) alone() error {
	if f.key == "" && f.repository == "" && f.none() && !f.wantsQuote() {
		return nil
	}
	return cli.WithHint(fmt.Errorf("there is no attestation that --attestation-key, --workspace, --commit, --image, --repository, --quote, --nonce or --measurement could be about: %w", paddock.Invalid), "add --attestation FILE")
}

// A comparison is what `paddock audit verify --attestation --json` answers.
type comparison struct {
	Version     int                    `json:"version"` // of this format: 1
	Attestation string                 `json:"attestation"`
	State       chain.State            `json:"state"` // whole or wrong
	Why         string                 `json:"why,omitempty"`
	Fingerprint string                 `json:"fingerprint"` // of the key that must have signed it
	Compared    []string               `json:"compared"`    // "record", and names of subjects
	Quote       *quote.Facts           `json:"quote,omitempty"`
	Statement   *attestation.Statement `json:"statement,omitempty"`
}

// verify verifies the attestation, and compares what is named with it.
func (f *attestedFlags) verify(ctx context.Context, a *cli.App, args []string, key, seen string, asJSON bool) error {
	switch {
	case len(args) > 1:
		return cli.WithHint(fmt.Errorf("paddock audit verify takes one FILE|DIR|URL, and got %d: %w", len(args), paddock.Invalid), "name one record, or none")
	case seen != "":
		return cli.WithHint(fmt.Errorf("--head and --attestation both name a head: %w", paddock.Invalid), "leave one out")
	case len(args) == 0 && f.none() && !f.wantsQuote():
		return cli.WithHint(fmt.Errorf("there is nothing to compare the attestation with: %w", paddock.Invalid), "name the record, --workspace DIR, --commit REV or --image DIGEST")
	}
	data, err := cli.ReadDocument("attestation", f.file)
	if err != nil {
		return err
	}
	public, err := f.publicKey(a, key)
	if err != nil {
		return err
	}
	c := comparison{Version: 1, Attestation: f.file, State: chain.Whole, Fingerprint: attestation.Fingerprint(public), Compared: []string{}}
	s, err := attestation.Open(data, public)
	if err != nil {
		return c.end(a, err, asJSON)
	}
	c.Statement = &s
	if c.Quote, err = f.verifyQuote(s.Predicate, public); err != nil {
		return c.end(a, err, asJSON)
	}
	if len(args) == 1 {
		wrong, err := c.withRecord(ctx, a, args[0], key)
		if err != nil {
			return err
		}
		if wrong != nil {
			return c.end(a, wrong, asJSON)
		}
	}
	subjects, err := f.subjects(ctx)
	if err != nil {
		return err
	}
	return c.end(a, c.with(subjects), asJSON)
}

// withRecord compares the attestation with a record. It returns what differs, or why the record cannot be read.
func (c *comparison) withRecord(ctx context.Context, a *cli.App, name, key string) (wrong, err error) {
	o, err := wanted(a, key, "")
	if err != nil {
		return nil, err
	}
	tally := attestation.Again(*c.Statement)
	o.Each = tally.Line
	found, err := verify(ctx, a, name, o)
	if err != nil {
		return nil, err
	}
	c.Compared = append(c.Compared, "record")
	if found.state() == chain.Wrong {
		return fmt.Errorf("%s: %w", name, found.wrong()), nil
	}
	p, err := tally.Predicate()
	if err == nil {
		err = attestation.Same(c.Statement.Predicate, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err), nil
	}
	return nil, nil
}

// wrong says what is wrong with a record.
func (o outcome) wrong() error {
	if o.series != nil {
		return fmt.Errorf("the record is wrong: %s: %s: %w", o.series.Wrong, o.series.Why, paddock.Conflict)
	}
	return fmt.Errorf("the record is wrong: line %d: %s: %w", o.report.Line, o.report.Why, paddock.Conflict)
}

// with compares the attestation with subjects, and returns what differs.
func (c *comparison) with(subjects []attestation.Subject) error {
	for _, have := range subjects {
		c.Compared = append(c.Compared, have.Name)
		i := slices.IndexFunc(c.Statement.Subject, func(s attestation.Subject) bool { return s.Name == have.Name })
		switch {
		case i < 0 && have.Name == attestation.WorkspaceName:
			return fmt.Errorf("it is not about a workspace: %w", paddock.Conflict)
		case i < 0:
			return fmt.Errorf("it is not about the %s: %w", strings.Replace(have.Name, ":", " ", 1), paddock.Conflict)
		case c.Statement.Subject[i] != have:
			return fmt.Errorf("the workspace has the digest %s, and the attestation is about %s: files were changed, added or removed: %w", have.Digest.SHA256, c.Statement.Subject[i].Digest.SHA256, paddock.Conflict)
		}
	}
	return nil
}

// end tells the result, and gives the exit status.
func (c *comparison) end(a *cli.App, wrong error, asJSON bool) error {
	if wrong != nil {
		c.State, c.Why = chain.Wrong, strings.TrimSuffix(wrong.Error(), ": "+paddock.KindOf(wrong).Error())
	}
	if asJSON {
		if err := cli.PrintJSON(a.Stdout, c); err != nil {
			return err
		}
		return verified(c.State)
	}
	if wrong != nil {
		fmt.Fprintf(a.Stderr, "paddock: %s: %s\n", cli.OneLine(c.Attestation), cli.OneLineOf(c.Why, cli.Paragraph))
		return cli.ExitStatus(1)
	}
	return c.tell(a)
}

// tell prints an attestation that is as it was signed.
func (c *comparison) tell(a *cli.App) error {
	p := c.Statement.Predicate
	var b bytes.Buffer
	say := func(name, text, flag string) {
		if flag != "" && !slices.Contains(c.Compared, name) {
			text += " (not compared: name " + flag + ")"
		}
		label, _, _ := strings.Cut(name, ":")
		fmt.Fprintf(&b, "  %-10s %s\n", label+":", cli.OneLineOf(text, cli.Paragraph))
	}
	fmt.Fprintf(&b, "%s: %s\n", cli.OneLine(c.Attestation), c.State)
	say("key", c.Fingerprint, "")
	for _, s := range c.Statement.Subject {
		switch {
		case s.Name == attestation.WorkspaceName:
			say(s.Name, "sha256:"+s.Digest.SHA256, "--workspace DIR")
		case s.Digest.GitCommit != "":
			say(s.Name, s.Digest.GitCommit, "--commit REV")
		default:
			say(s.Name, "sha256:"+s.Digest.SHA256, "--image DIGEST")
		}
	}
	say("record", p.Record.Head.String(), "the record")
	say("sandbox", fmt.Sprintf("%s on tier %s, started %s", p.Sandbox.ID, p.Sandbox.Tier, p.Started.Format(time.RFC3339)), "")
	say("policy", "sha256:"+p.Policy.Digest.SHA256, "")
	say("paddock", p.Paddock.Version+", sha256:"+p.Paddock.Digest.SHA256, "")
	if n := p.Counts.Steps; n != nil {
		say("steps", fmt.Sprintf("%d, %s, %d of them removed", n.Number, cli.Plural(int(n.Changed), "path", "paths"), n.Removed), "")
	}
	if c.Quote != nil {
		say("quote", c.Quote.Machine+", measurement "+c.Quote.Measurement, "")
	}
	return a.Say("%s", b.String())
}
