package tool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/paddock-sandbox/paddock/tool"
)

type charge struct {
	Amount   int64   `json:"amount" doc:"minor units"`
	Currency string  `json:"currency" doc:"three letters"`
	Note     *string `json:"note" doc:"shown to the customer"`
}

type receipt struct {
	ID string `json:"id"`
}

// A tool is a function; a grant bounds it; a script inside a sandbox calls it
// as a command or from JavaScript, both of which end in Set.Call.
func Example() {
	create, err := tool.Define("stripe.charges.create", "Charge a card.",
		func(_ context.Context, in charge) (receipt, error) {
			return receipt{ID: fmt.Sprintf("ch_%d_%s", in.Amount, in.Currency)}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	grant, err := tool.ParseGrant([]byte(`{
		"name": "small charges", "tools": "stripe/**", "max_calls": 10,
		"constraints": {"amount": "<=1000", "currency": ["EUR", "USD"]},
		"budgets": [{"argument": "amount", "total": 1500}]}`))
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(tool.Options{
		Tools:  []tool.Tool{create},
		Grants: []tool.Grant{grant},
		Recorder: func(r tool.Record) {
			fmt.Printf("record: %s %s %d\n", r.Tool, r.Outcome, r.Cost)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(set.Prompt())

	ctx := context.Background()
	run := func(words ...string) {
		t, rest, err := set.Command(words)
		if err != nil {
			fmt.Println(err)
			return
		}
		args, err := t.Arguments(rest, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := set.Call(ctx, t.Name(), args)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(out))
	}
	run("stripe", "charges", "create", "--amount", "900", "--currency=EUR")
	run("stripe", "charges", "create", "--amount", "5000", "--currency=EUR")
	run("stripe", "charges", "create", "--amount", "900", "--currency=EUR")
	run("stripe", "charges", "create", "--amount", "many")
	// Output:
	// stripe charges create --amount integer --currency string [--note string]
	//     Charge a card.
	//     allowed: amount <= 1000; currency in ["EUR", "USD"]; at most 10 calls; the sum of amount at most 1500 in all
	// record: stripe/charges/create done 900
	// {"id":"ch_900_EUR"}
	// record: stripe/charges/create denied 0
	// call stripe/charges/create: grant "small charges": amount <= 1000 does not hold: it is 5000: denied
	// record: stripe/charges/create exhausted 0
	// call stripe/charges/create: grant "small charges": the sum of amount is bounded by 1500: 600 are left, this call takes 900: exhausted
	// stripe charges create: --amount: "many" is not a number: invalid
}

// What is handed on to another agent is never more than what one has.
func ExampleSet_Delegate() {
	read, err := tool.Define("files/read", "Read a file.",
		func(_ context.Context, in struct {
			Path string `json:"path"`
		}) (string, error) {
			return "content of " + in.Path, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(tool.Options{Tools: []tool.Tool{read}, Grants: []tool.Grant{{
		Tools:       "files/*",
		Constraints: []tool.Constraint{{Op: tool.Under, Path: "path", Value: "/data"}},
		MaxCalls:    2,
	}}})
	if err != nil {
		log.Fatal(err)
	}
	_, err = set.Delegate(tool.Grant{Tools: "files/**"})
	fmt.Println(err)
	helper, err := set.Delegate(tool.Grant{Name: "helper", Tools: "files/read"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = helper.Call(context.Background(), "files/read", []byte(`{"path":"/data/../etc/passwd"}`))
	fmt.Println(err)
	set.Authorities()[0].Revoke()
	_, err = helper.Call(context.Background(), "files/read", []byte(`{"path":"/data/a"}`))
	fmt.Println(err)
	// Output:
	// delegate "files/**": delegate: attenuate "files/*": the tools files/** are not all among files/*: denied
	// call files/read: grant "helper": path under "/data" does not hold: it is "/data/../etc/passwd": denied
	// call files/read: grant "helper": of "files/*", which it was delegated from: the grant was revoked: denied
}
