package agenthook

import (
	"strings"
	"testing"
)

func TestWhatBeatsAHook(t *testing.T) {
	t.Parallel()
	ours, err := claude().Install(nil, program, nil, []string{"--project=1:/p"})
	if err != nil {
		t.Fatal(err)
	}
	for text, beats := range map[string]bool{
		string(ours): false, "": false, `{"hooks":{"PreToolUse":[{"matcher":"Write|Edit","hooks":[{"command":"x"}]}]}}`: false,
		`{"disableAllHooks":false,"disableAllHooks":true}`: true, `{"hooks":{},"hooks":{"PreToolUse":[{"hooks":[{"command":"x"}]}]}}`: true,
		`{"hooks":{"PermissionRequest":[{"matcher":".*","hooks":[{"command":"x"}]}]}}`: true, `{"hooks":{"PreToolUse":[{"matcher":"(","hooks":[{"command":"x"}]}]}}`: true,
		`{"hooks":{"PreToolUse":{}}}`: true, `[`: true, `[]`: true,
	} {
		if why := claude().Beats("settings.json", []byte(text)); (why != "") != beats {
			t.Errorf("%s: %q", text, why)
		}
	}
}

// Agents read matchers in more than one way, so what may match our tool counts as a rival; each row did in an agent.
func TestAMatcherThatMayMatchIsARival(t *testing.T) {
	t.Parallel()
	claude := claude()
	gemini, _ := Named("gemini")
	for _, row := range []struct {
		agent   Agent
		matcher string
		rival   bool
	}{
		{claude, "Edit, Bash", true}, {claude, "^Ba", true}, {claude, "Ba.", true}, {claude, "", true}, {claude, "*", true}, {claude, "Edit|", true},
		{claude, "Edit|Bash", true}, {claude, "mcp__a|B.*", true}, {claude, "Write|Edit", false}, {claude, "mcp__memory__.*", false},
		{gemini, "run_shell", true}, {gemini, "shell|write", true}, {gemini, "write_file", false},
	} {
		event := "PreToolUse"
		if row.agent.Name == "gemini" {
			event = "BeforeTool"
		}
		text := `{"hooks":{"` + event + `":[{"matcher":"` + row.matcher + `","hooks":[{"command":"x"}]}]}}`
		if why := row.agent.Beats("settings.json", []byte(text)); (why != "") != row.rival {
			t.Errorf("%s %q: %q", row.agent.Name, row.matcher, why)
		}
	}
}

func TestWhatSwitchesHooksOff(t *testing.T) {
	t.Parallel()
	if why := claude().Beats("settings.json", []byte(`{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`)); why == "" {
		t.Error("a variable of Claude's is not seen")
	}
	if why := claude().Beats("settings.json", []byte(`{"env":{"EDITOR":"vi"}}`)); why != "" {
		t.Errorf("another variable: %s", why)
	}
	codex, _ := Named("codex")
	for text, off := range map[string]bool{
		"features = { hooks = false }": true, "features = { codex_hooks = false }": true, "[features]\n'hooks' = false": true, "features.\"hooks\"=false": true,
		"[features]\n\"h\\u006foks\" = false": true, "[features]\nhooks = true": false, "model = \"x\"": false,
	} {
		if why := codex.Beats("config.toml", []byte(text)); (why != "") != off {
			t.Errorf("%s: %q", text, why)
		}
	}
}

// A parser without a bound would end the program, with a gigabyte of stack.
func TestADeepFileIsRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1<<20)
	for _, text := range []string{`{"a":` + deep, `{"b":"` + strings.Repeat("]", 1<<20) + `","a":` + deep, `{/*` + strings.Repeat("]", 1<<20) + `*/"a":` + deep, "{//" + strings.Repeat("]", 1<<20) + "\n\"a\":" + deep} {
		if why := claude().Beats("settings.json", []byte(text)); why == "" {
			t.Errorf("%.20s: nothing is said", text)
		}
		if _, err := claude().Install([]byte(text), program, nil, nil); err == nil {
			t.Errorf("%.20s: it is edited", text)
		}
	}
	if why := claude().Beats("settings.json", []byte(`{"a":"`+deep+`"}`)); why != "" {
		t.Errorf("a text of brackets: %s", why)
	}
}

func FuzzBeside(f *testing.F) {
	f.Add([]byte(`{"a":` + strings.Repeat("[", 1000)))
	f.Add([]byte(`{"disableAllHooks":true,"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"x"}]}]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, a := range Agents() {
			for _, name := range []string{"x.json", "x.toml"} {
				_ = a.Beats(name, data)
			}
		}
	})
}
