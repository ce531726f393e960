package main

import "github.com/spf13/cobra"

// The commands of subprograms, as `paddock help` lists them. A test compares the lists with the commands
// themselves.

func serverCommands() []cobra.Command {
	return []cobra.Command{
		{Use: "serve [flags]", Short: "Make sandboxes for others, over the network or a socket"},
		{Use: "tenant", Short: "Keep the tenants of a server"},
		{Use: "key", Short: "Keep the keys that callers of a server show"},
		{Use: "usage [flags]", Short: "Tell what sandboxes of a server used, and what that costs"},
	}
}

func auxiliaryCommands() []cobra.Command {
	return []cobra.Command{
		{Use: "audit", Short: "Verify, read and attest what paddock run --audit recorded"},
		{Use: "build [flags] DIR", Short: "Build an image by a Dockerfile, in sandboxes"},
		{Use: "image", Short: "Pull, list and remove the images that sandboxes start from"},
		{Use: "mcp [flags]", Short: "Give an agent sandboxes as tools of the Model Context Protocol"},
		{Use: "sim", Short: "Prepare what the tier sim does not carry"},
		{Use: "vm", Short: "Prepare what the tier microvm does not carry"},
	}
}
