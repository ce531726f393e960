package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock/internal/policy"
)

// meantCommand says which command below c was probably meant by a name, as the beginning of a hint.
func meantCommand(c *cobra.Command, name string) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return meant(policy.Nearest(name, names))
}

// meantFlag says which flag of c was probably meant, if the error is about a flag that does not exist.
func meantFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := policy.Nearest(unknown.GetSpecifiedName(), names)
	if near == "" {
		return ""
	}
	return meant("--" + near)
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? ", name)
}

// readerGone reports whether the reader of standard output has gone, as head does when it has read
// enough. Nobody is told: the caller asked for no more.
func readerGone(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EPIPE) && errors.As(err, &path) && strings.HasSuffix(path.Path, "stdout")
}
