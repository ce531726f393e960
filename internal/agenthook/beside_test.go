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
