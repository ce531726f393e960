package guestpb

import "google.golang.org/protobuf/proto"

// Warm encodes and decodes the messages of a short command once. The library
// works each kind of message out at its first use, which takes longer than all
// the rest of a first call; both ends have time for it while a sandbox is made.
func Warm() {
	for _, m := range []proto.Message{
		&StartRequest{Args: [][]byte{{'x'}}, Env: map[string][]byte{"x": {'x'}}, Dir: []byte("/"), Input: true, Terminal: &Size{Rows: 1}, Timeout: 1, User: "x"},
		&ProcessEvent{Event: &ProcessEvent_Started{Started: &Started{Pid: 1}}},
		&ProcessEvent{Event: &ProcessEvent_Output{Output: &Output{Data: []byte("x")}}},
		&ProcessEvent{Event: &ProcessEvent_Exited{Exited: &Exited{Cause: Cause_CAUSE_EXITED, Code: 1}}},
		&RefusalsRequest{}, &RefusalsResponse{Refusals: []*Refusal{{Time: 1, What: "x", Target: []byte("x"), Rule: "x", Remedy: "x", Count: 1}}}, // asked for at its end
	} {
		if data, err := proto.Marshal(m); err == nil {
			_ = proto.Unmarshal(data, m.ProtoReflect().New().Interface()) // what was just encoded
		}
	}
}
