package agenthook

import "testing"

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

func FuzzBeside(f *testing.F) {
	f.Add([]byte(`{"disableAllHooks":true,"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"command":"x"}]}]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, a := range Agents() {
			for _, name := range []string{"x.json", "x.toml"} {
				_ = a.Beats(name, data)
			}
		}
	})
}
