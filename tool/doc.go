// Package tool turns Go functions into tools for agents, and bounds what an agent may do
// with them. It holds no files, sockets or processes. The function of a tool decides what
// the tool accesses.
//
// # Tools
//
// [Define] makes a [Tool] from a function with a struct argument and any result. The
// struct's json tags name the arguments, and its doc tags explain them:
//
//	type charge struct {
//		Amount   int64   `json:"amount" doc:"minor units"`
//		Currency string  `json:"currency"`
//		Note     *string `json:"note" doc:"shown to the customer"`
//	}
//	create, err := tool.Define("stripe/charges/create", "Charge a card.", func(ctx context.Context, in charge) (receipt, error) { … })
//
// A field is required unless it is a pointer or tagged omitempty (or omitzero). The struct
// determines the JSON Schema for an agent's list of tools, the command line (`stripe
// charges create --amount 5 --currency EUR`), its --help, and the check of every call.
// Argument names must match exactly, numbers are exact to the digit, and an unknown or
// repeated argument is an error. The check sees the same values as the function: a number
// for a float64 is rounded before it is compared, never after.
//
// # Capabilities
//
// A [Grant] allows calls: of which tools, with which arguments, how many, for how much in
// total, until when. Everything else is refused, so a set without grants refuses every
// call. A grant in force is an [Authority]. It counts usage, can be revoked, and can be
// delegated. A delegated authority is never wider than its parent. Each of its calls counts
// against all of its ancestors, and it ends when one of them ends.
//
// Constraints respect the type of a value: true is not a number, "5" is not 5, and 1 equals
// 1.0. An argument that is missing, or of a type that the constraint cannot compare, fails
// the constraint; this also holds for [Ne] and [NotIn]. A constraint that cannot be
// understood makes the grant invalid; nothing is dropped. [StartsWith] compares text and
// does not know paths: "/api/../admin" starts with "/api/". [Under] is for paths, and
// cleans the value first. It is lexical; the tool must handle links itself.
//
// There is deliberately no regular expression among the constraints. Whether one contains
// another cannot be decided in reasonable time, and what cannot be decided cannot be
// delegated.
//
// # In the sim tier
//
// A [Set] is what a sandbox gets: tools, the grants that bound them, and a recorder of
// every call, including refused ones. Inside the sandbox each tool of [Set.Tools] is
// available in two forms. As a command, the segments of its name are the words:
//
//	$ stripe charges create --amount 5 --currency EUR | jq .id
//
// For this the shell asks [Set.Command] which tool the words name, then [Tool.Arguments]
// for the JSON of the rest, then [Set.Call], and prints the result. An error of
// [Tool.Arguments] is a usage error (status 2), except that [HelpWanted] prints [Tool.Help]
// (status 0). An error of [Set.Call] goes to standard error (status 1). As a function of
// JavaScript:
//
//	const r = await tools.stripe.charges.create({amount: 5, currency: "EUR"})
//
// Its path is [Tool.Segments], its argument goes as JSON to [Set.Call], and it throws the
// call's error. A model that gets tools directly gets [Set.Describe], and names a tool as
// [Tool.AgentName] does. [Set.Prompt] is the same for a model that writes scripts.
package tool
