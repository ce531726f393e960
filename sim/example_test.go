package sim_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/sim"
	"github.com/paddock-sandbox/paddock/tool"
)

// A new computer, and a script on it.
func Example() {
	ctx := context.Background()
	driver, err := sim.New(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	box, err := driver.Create(ctx, paddock.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	exit, err := sim.Run(ctx, box, sim.Script{Text: `echo "hello from $(hostname)" | tr a-z A-Z; exit 3`, Stdout: os.Stdout})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(exit.Code, exit.Cause)
	// Output:
	// HELLO FROM PADDOCK
	// 3 exited
}

// Files in, a script over them, files out.
func Example_files() {
	ctx := context.Background()
	driver, err := sim.New(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	box, err := driver.Create(ctx, paddock.Spec{Dir: "/tmp"})
	if err != nil {
		log.Fatal(err)
	}
	in, err := box.FS().Create(ctx, "/tmp/orders.csv", paddock.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(in, "customer,amount\nann,20\nbob,5\nann,7\n")
	if err := in.Close(); err != nil {
		log.Fatal(err)
	}
	if _, err := sim.Run(ctx, box, sim.Script{
		Text: `tail -n +2 orders.csv | awk -F, '{ sum[$1] += $2 } END { for (c in sum) print c, sum[c] }' | sort >report`, Stderr: os.Stderr,
	}); err != nil {
		log.Fatal(err)
	}
	out, err := box.FS().Open(ctx, "/tmp/report", paddock.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	report, err := io.ReadAll(out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", report)
	// Output:
	// ann 27
	// bob 5
}

// A Go function becomes a command of the computer, within what a grant allows.
func Example_tools() {
	type charge struct {
		Amount   int    `json:"amount"`
		Currency string `json:"currency"`
	}
	create, err := tool.Define("payments/charge", "Charge the customer.", func(_ context.Context, in charge) (string, error) {
		return fmt.Sprintf("charged %d %s", in.Amount, in.Currency), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	grant, err := tool.ParseGrant([]byte(`{"tools": "payments/*", "constraints": {"amount": "<=100"}, "max_calls": 5}`))
	if err != nil {
		log.Fatal(err)
	}
	tools, err := tool.NewSet(tool.Options{Tools: []tool.Tool{create}, Grants: []tool.Grant{grant}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	driver, err := sim.New(sim.Options{Tools: tools})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	box, err := driver.Create(ctx, paddock.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sim.Run(ctx, box, sim.Script{Stdout: os.Stdout, Stderr: os.Stdout, Text: `
		for amount in 20 4000; do
			payments charge --amount $amount --currency EUR || echo "status $?"
		done`,
	}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "charged 20 EUR"
	// payments: call payments/charge: grant "payments/*": amount <= 100 does not hold: it is 4000: denied
	// status 1
}

// A session keeps the state of its shell from one script to the next.
func ExampleSession() {
	ctx := context.Background()
	driver, err := sim.New(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	box, err := driver.Create(ctx, paddock.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	session, err := sim.OpenSession(ctx, box, paddock.Cmd{Env: map[string]string{"WHO": "you"}})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, text := range []string{
		`greet() { echo "hello $1, in $PWD"; }; cd /tmp`,
		`greet "$WHO"`,
		`read -r line; echo "read: $line"`,
	} {
		if _, err := session.Run(ctx, sim.Script{Text: text, Stdin: strings.NewReader("a line\n"), Stdout: os.Stdout}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// hello you, in /tmp
	// read: a line
}

// A snapshot takes constant time, and so does a computer that begins with it.
func Example_fork() {
	ctx := context.Background()
	driver, err := sim.New(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	parent, err := driver.Create(ctx, paddock.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	run := func(box paddock.Sandbox, text string) {
		if _, err := sim.Run(ctx, box, sim.Script{Text: text, Stdout: os.Stdout}); err != nil {
			log.Fatal(err)
		}
	}
	run(parent, `echo "common ground" >/tmp/notes`)
	id, err := parent.Snapshot(ctx, paddock.SnapshotOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"one", "other"} {
		child, err := driver.Create(ctx, paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}, Hostname: name})
		if err != nil {
			log.Fatal(err)
		}
		run(child, `echo "seen by $HOSTNAME" >>/tmp/notes; cat /tmp/notes`)
	}
	run(parent, `cat /tmp/notes`)
	// Output:
	// common ground
	// seen by one
	// common ground
	// seen by other
	// common ground
}

// What takes too much ends with the limit's name, and the computer stays
// usable.
func ExampleLimits() {
	ctx := context.Background()
	driver, err := sim.New(sim.Options{Limits: sim.Limits{Iterations: 1000}})
	if err != nil {
		log.Fatal(err)
	}
	defer driver.Close()
	box, err := driver.Create(ctx, paddock.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{`while :; do :; done`, `echo still here`} {
		exit, err := sim.Run(ctx, box, sim.Script{Text: text, Stdout: os.Stdout})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(exit.Code, exit.Cause, exit.Reason)
	}
	// Output:
	// 137 out-of-budget the limit "iterations" (1000) is used up
	// still here
	// 0 exited
}
