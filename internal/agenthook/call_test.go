package agenthook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func none(string) (string, bool) { return "", false }

// answered gives the answer to a recorded input.
func answered(t *testing.T, a Agent, event Event, input string, approve bool) (string, error) {
	t.Helper()
	c, err := a.Read(event, []byte(input), none)
	if err != nil {
		return "", err
	}
	out, err := a.Answer(c, program, []string{"--memory=2G"}, approve)
	return string(out), err
}

func TestRecordedInputs(t *testing.T) {
	t.Parallel()
	for _, a := range Agents() {
		names, err := filepath.Glob("testdata/input/" + a.Name + "*.json")
		if err != nil || len(names) == 0 {
			t.Errorf("%s: nothing is recorded", a.Name)
		}
		for _, name := range names {
			input, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out, err := answered(t, a, Step, string(input), false)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			golden := strings.TrimSuffix(name, ".json") + ".answer"
			if os.Getenv("PADDOCK_UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || out != string(want) {
				t.Errorf("%s: %v; the answer is now\n%s", name, err, out)
			}
		}
	}
}

func TestWhatCannotBeRoutedIsRefused(t *testing.T) {
	t.Parallel()
	step := func(tool, input string) string {
		return `{"session_id":"s","cwd":"/p","tool_name":"` + tool + `","tool_input":` + input + `}`
	}
	for _, c := range []struct {
		agent Agent
		input string
	}{
		{claude(), ``}, {claude(), `[]`}, {claude(), `null`}, {claude(), `{}`}, {claude(), "\xff"},
		{claude(), step("PowerShell", `{"command":"ls"}`)},
		{claude(), step("Bash", `{}`)}, {claude(), step("Bash", `{"command":""}`)}, {claude(), step("Bash", `{"command":["ls"]}`)},
		{claude(), step("Bash", `"ls"`)}, {claude(), step("Bash", `{"command":"a\u0000b"}`)}, {claude(), step("", `{"command":"ls"}`)},
		{claude(), `{"session_id":"s","cwd":"p","tool_name":"Bash","tool_input":{"command":"ls"}}`},
		{claude(), `{"session_id":"","cwd":"/p","tool_name":"Bash","tool_input":{"command":"ls"}}`},
		{claude(), step("Bash", `{"command":"`+strings.Repeat("a", MaxCommand)+`"}`)},
		{copilot(), step("write_bash", `{"input":"ls"}`)},
	} {
		if out, err := answered(t, c.agent, Step, c.input, true); err == nil {
			t.Errorf("%.100s was answered %s", c.input, out)
		}
	}
	if out, err := answered(t, claude(), Step, step("Write", `{}`), false); err != nil || out != "" {
		t.Errorf("a tool that is no shell was answered %q, %v", out, err)
	}
}

// The command that comes out holds nothing of what went in but as one encoded word, whoever wrote session and project.
func TestACommandCannotLeaveItsWord(t *testing.T) {
	t.Parallel()
	for _, word := range hostile() {
		if strings.TrimSpace(word) == "" || !utf8.ValidString(word) {
			continue
		}
		input, err := marshal(map[string]any{"session_id": word, "cwd": "/" + word, "tool_name": "Bash", "tool_input": map[string]any{"command": word, "timeout": 5}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := answered(t, claude(), Step, string(input), false)
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		var answer struct {
			HookSpecificOutput struct {
				PermissionDecision *string
				UpdatedInput       struct {
					Command string
					Timeout int
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		in := answer.HookSpecificOutput.UpdatedInput
		if i := strings.LastIndex(in.Command, " -- "); i < 0 || in.Command[i+4:] != quoted(Encode(word)) || in.Timeout != 5 {
			t.Errorf("%q became %q", word, in.Command)
		}
		if answer.HookSpecificOutput.PermissionDecision != nil {
			t.Errorf("%q was decided about", word)
		}
	}
}

func TestTheGuardTakesOnlyWhatTheHookWrote(t *testing.T) {
	t.Parallel()
	a := cursor()
	out, err := answered(t, a, Step, `{"conversation_id":"s","workspace_roots":["/p"],"tool_name":"Shell","tool_input":{"command":"ls 'a'"}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	var step struct {
		UpdatedInput struct{ Command string } `json:"updated_input"`
	}
	if err := json.Unmarshal([]byte(out), &step); err != nil {
		t.Fatal(err)
	}
	guard := func(command string) error {
		input, err := marshal(map[string]any{"conversation_id": "s", "workspace_roots": []string{"/p"}, "command": command})
		if err != nil {
			t.Fatal(err)
		}
		_, err = answered(t, a, Guard, string(input), false)
		return err
	}
	line := step.UpdatedInput.Command
	if err := guard(line); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	for _, command := range []string{
		"ls", line + "; id", line[:strings.LastIndex(line, " ")] + " $(id)", line[:strings.LastIndex(line, " ")] + " ;id", line + "\nid", line + " 'b'", "env " + line, strings.Replace(line, "--memory=2G", "--memory=9G", 1),
		strings.Replace(line, "/p", "/", 1), program + " hook shell --box a -- ls", strings.TrimSuffix(line, "'") + "$(id)'\"'\"'",
	} {
		if guard(command) == nil {
			t.Errorf("the guard took %s", command)
		}
	}
}

func TestABoxIsOfOneSessionAndProject(t *testing.T) {
	t.Parallel()
	a := claude()
	one := a.Box(Call{Session: "s", Project: "/p"}, nil)
	if !one.Valid() {
		t.Errorf("%s is no ID", one)
	}
	for _, other := range []Call{{Session: "t", Project: "/p"}, {Session: "s", Project: "/q"}, {Session: "s/", Project: "p"}} {
		if a.Box(other, nil) == one {
			t.Errorf("%v has the box of another one", other)
		}
	}
	if a.Box(Call{Session: "s", Project: "/p"}, []string{"--memory=1G"}) == one || codex().Box(Call{Session: "s", Project: "/p"}, nil) == one {
		t.Error("other flags, or another agent, have the same box")
	}
	if a.Box(Call{Session: "s", Project: "/p", Command: "x", Sub: true}, nil) != one {
		t.Error("a step has another box than the one before")
	}
}

func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","cwd":"/p","tool_name":"Bash","tool_input":{"command":"ls"}}`))
	f.Add([]byte(`{"sessionId":"s","cwd":"/p","toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, a := range Agents() {
			for _, event := range []Event{Step, Guard, End} {
				c, err := a.Read(event, data, none)
				if err != nil || event == End {
					continue
				}
				out, err := a.Answer(c, program, nil, false)
				if err == nil && out != nil && !json.Valid(out) {
					t.Fatalf("%q was answered %q", data, out)
				}
			}
		}
	})
}
