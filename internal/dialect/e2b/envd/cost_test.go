package envd

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// wires are requests of at most a message's size that take the most memory.
func wires(t *testing.T) map[string]*envdpb.StartRequest {
	t.Helper()
	envs := map[string]string{}
	for i := range 60_000 {
		envs[fmt.Sprintf("%x", i)] = ""
	}
	return map[string]*envdpb.StartRequest{
		"empty arguments": {Process: &envdpb.ProcessConfig{Cmd: "a", Args: make([]string, maxMessage/2-100)}},
		"short arguments": {Process: &envdpb.ProcessConfig{Cmd: "a", Args: strings.Split(strings.Repeat("ab,", 100_000), ",")}},
		"variables":       {Process: &envdpb.ProcessConfig{Cmd: "a", Envs: envs}},
		"long text":       {Process: &envdpb.ProcessConfig{Cmd: strings.Repeat("a", 1_000_000)}},
		"a small one":     {Process: &envdpb.ProcessConfig{Cmd: "a", Args: []string{"b"}}},
	}
}

func TestTheCostOfAMessageIsThatOfItsValues(t *testing.T) {
	for name, m := range wires(t) {
		wire, err := proto.Marshal(m)
		if err != nil || len(wire) > maxMessage {
			t.Fatal(len(wire), err)
		}
		var before, after runtime.MemStats
		got := &envdpb.StartRequest{}
		runtime.ReadMemStats(&before)
		if err := proto.Unmarshal(wire, got); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		cost, whole := costOfWire(m.ProtoReflect().Descriptor(), wire), costOfMessage(m.ProtoReflect())
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 2*cost {
			t.Errorf("%s: %d bytes, estimated were %d", name, took, cost)
		}
		if cost > 2*whole || whole > 2*cost {
			t.Errorf("%s: %d bytes before it is decoded, %d afterwards", name, cost, whole)
		}
		if small := int64(2000); name == "a small one" && cost > small {
			t.Errorf("%d bytes of a small one", cost)
		}
	}
}

func TestMessagesCountWithWhatTheyTake(t *testing.T) {
	tr := newTrial(t)
	m := wires(t)["empty arguments"]
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	list := `{"process":{"cmd":"a","args":["",` + strings.Repeat(`"",`, 300_000) + `""]}}`
	frame := func(b string) string {
		n := len(b)
		return string([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + b
	}
	const room = 8 << 20 // several times what arrives
	tr.box.held.Add(maxHeld - room)
	for kind, body := range map[string]string{"application/connect+proto": frame(string(wire)), "application/connect+json": frame(list)} {
		if _, answer, _ := tr.ask("POST", "/process.Process/Start", body, "Content-Type", kind); !strings.Contains(answer, "resource_exhausted") {
			t.Errorf("%s: %.200q", kind, answer)
		}
	}
	if _, failure := tr.call("process.Process/SendSignal", list); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("a call: %q", failure)
	}
	tr.box.held.Add(room - maxHeld)
	tr.web.Close() // waits for its requests
	if n := tr.box.held.Load(); n != 0 {
		t.Errorf("%d bytes are counted of no request", n)
	}
}

func TestOfACommandWithManyArgumentsOnlyItsNameIsKept(t *testing.T) {
	tr := newTrial(t)
	many := &envdpb.ProcessConfig{Cmd: "a", Args: make([]string, maxConfig/2-100)}
	if p := tr.box.newProcess(many, nil, false); p.config != nil {
		t.Errorf("%d arguments are kept", len(p.config.GetArgs()))
	}
	few := &envdpb.ProcessConfig{Cmd: "a", Args: []string{"b", "c"}}
	if p := tr.box.newProcess(few, nil, false); p.config == nil {
		t.Error("a short command is not kept")
	}
}

func FuzzTheCostOfAMessageIsKnownBeforeItIsDecoded(f *testing.F) {
	seed, err := proto.Marshal(&envdpb.StartRequest{Process: &envdpb.ProcessConfig{Cmd: "a", Args: []string{"", "b"}, Envs: map[string]string{"A": "b"}}, Pty: &envdpb.PTY{Size: &envdpb.PTY_Size{Rows: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0x0b, 0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := &envdpb.StartRequest{}
		before := costOfWire(m.ProtoReflect().Descriptor(), wire)
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire, m); err != nil {
			return
		}
		if isRefused(m) {
			t.Error("a decoded message looks like one that there was no room for")
		}
		if after := costOfMessage(m.ProtoReflect()); after > before {
			t.Errorf("%d bytes before it is decoded, %d afterwards", before, after)
		}
	})
}
