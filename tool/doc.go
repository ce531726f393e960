// Package tool turns Go functions into tools for agents, and bounds what an
// agent may do with them. It holds no files, sockets or processes: what a tool
// reaches is the business of its function.
//
// # Tools
//
// [Define] makes a [Tool] of a function from one struct to any result. The
// struct's json tags name the arguments, its doc tags explain them:
//
//	type charge struct {
//		Amount   int64   `json:"amount" doc:"minor units"`
//		Currency string  `json:"currency"`
//		Note     *string `json:"note" doc:"shown to the customer"`
//	}
//	create, err := tool.Define("stripe/charges/create", "Charge a card.", func(ctx context.Context, in charge) (receipt, error) { … })
//
// A field is required unless it is a pointer or tagged omitempty (or
// omitzero). From the struct come the JSON Schema for an agent's list of
// tools, the command line (`stripe charges create --amount 5 --currency EUR`),
// its --help, and the check of every call. Names of arguments are exact to the
// letter, numbers are exact to the digit, an unknown or doubled argument is an
// error. What is checked is what the function sees: a number for a float64 is
// rounded before it is compared, never after.
//
// # Capabilities
//
// A [Grant] allows calls: of which tools, with which arguments, how many, for
// how much in sum, until when. What no grant allows is refused, so a set
// without grants refuses all. A grant in force is an [Authority]: it counts,
// it can be revoked, and it can be delegated. A delegated authority is never
// wider than its parent, each of its calls counts against all of its
// ancestors, and it ends with any of them.
//
// Constraints compare with the value's type in mind: true is not a number, "5"
// is not 5, and 1 is 1.0. An argument that is missing, or of a type that the
// constraint cannot compare, fails it; this holds for [Ne] and [NotIn] too. A
// constraint that cannot be understood makes the grant an error; nothing is
// dropped. [StartsWith] compares text and knows nothing of paths:
// "/api/../admin" starts with "/api/". For paths there is [Under], which
// cleans the value first; it is lexical, and links are the tool's to mind.
//
// There is deliberately no regular expression among the constraints: whether
// one contains another cannot be decided in reasonable time, and what cannot
// be decided cannot be delegated.
//
// # In the sim tier
//
// A [Set] is what a sandbox is given: tools, the grants that bound them, and a
// recorder that hears of every call, the refused ones too. Inside the sandbox
// each tool of [Set.Tools] appears twice. As a command, its name's segments
// are the words:
//
//	$ stripe charges create --amount 5 --currency EUR | jq .id
//
// For this the shell asks [Set.Command] which tool the words name, then
// [Tool.Arguments] for the JSON of the rest, then [Set.Call], and prints the
// result. An error of [Tool.Arguments] is a mistake of usage (status 2), one
// that is [HelpWanted] prints [Tool.Help] (status 0), and one of [Set.Call]
// goes to standard error (status 1). And as a function of JavaScript:
//
//	const r = await tools.stripe.charges.create({amount: 5, currency: "EUR"})
//
// whose path is [Tool.Segments], whose argument goes as JSON to [Set.Call], and
// which throws the call's error. A model that is offered tools directly gets
// [Set.Describe] and names a tool as [Tool.AgentName] does; [Set.Prompt] is the
// same for a model that writes scripts.
package tool
